//! The named reasons why a sample is not attributed, or only in part.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $sentence:literal;)*) => {
        named! {
            /// Reason that a sample has no data object. The first ten are those of Oracle's Performance Analyzer.
            Reason { $($(#[$doc])* $variant = $name;)* }
        }

        impl Reason {
            /// One sentence for a person.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Reason::$variant => $sentence,)* }
            }
        }
    };
}

reasons! {
    /// No usable debug information, and the address path did not help.
    Unascertainable = "unascertainable",
        "the load object has no usable debug information, and the data address did not help";
    /// No function bounds or instruction boundary at IP.
    Unverifiable = "unverifiable",
        "no function bounds or instruction boundary could be established at the reported IP";
    /// IP is a branch target and several predecessors remain.
    Unresolvable = "unresolvable",
        "the reported IP is a branch target and several predecessors remain";
    /// No variable or type covers the operand.
    Unidentified = "unidentified",
        "debug information exists, but no variable or type covers the operand";
    /// The event says memory access, the instruction decodes as none.
    Unspecified = "unspecified",
        "the event says memory access, but the instruction accesses none";
    /// A compiler temporary.
    Undetermined = "undetermined",
        "the operand is a temporary of the compiler";
    /// The preceding instruction in time is in another function.
    Blocked = "blocked",
        "the preceding instruction in time is in another function";
    /// Nothing of the event's class within range.
    Incomplete = "incomplete",
        "no instruction of the event's class lies within the skid range";
    /// The effective address is lost; the type is still attributed.
    RegisterLoss = "register_loss",
        "registers of the operand changed after the access: its address is lost";
    /// Non-canonical, or in no mapping at that time.
    InvalidAddress = "invalid_address",
        "the address is not one of user space, or in no mapping at that time";
    /// The file is gone or cannot be read.
    ObjectMissing = "object_missing",
        "the load object's file is gone or cannot be read";
    /// The file is not the one that was mapped.
    ObjectChanged = "object_changed",
        "the load object's file is not the one that was mapped";
    /// Not x86-64.
    UnsupportedMachine = "unsupported_machine",
        "the code is not x86-64";
    /// Anonymous executable memory without a map.
    JitCode = "jit_code",
        "the code is in anonymous memory: made at run time";
    /// No mapping is known at the reported IP.
    MappingGone = "mapping_gone",
        "no mapping is known at the reported IP";
    /// The kernel's own code or accesses.
    Kernel = "kernel",
        "the kernel's own code, for example in a system call";
    /// Code of a virtual machine that runs on this one: its memory is not to be seen from here.
    Guest = "guest",
        "code of a virtual machine that runs on this one";
    /// A limit of ours cut the work.
    OverBudget = "over_budget",
        "a limit of the profiler cut the work";
    /// Debug information is still loading.
    Pending = "pending",
        "debug information is still loading";
}

/// Number of reasons.
pub const N_REASONS: usize = Reason::ALL.len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_the_fixed_names() {
        for reason in Reason::ALL {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{}\"", reason.name()));
        }
        assert_eq!(N_REASONS, 19);
    }
}
