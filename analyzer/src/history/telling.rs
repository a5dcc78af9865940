//! Words of the hardware and of the analysis about one access, in few bits.

use dataspace_proto::memory::{Access, Level, MemorySegment, Region, Snoop, Tlb};
use dataspace_proto::record::Sample;
use dataspace_proto::sample_line::{AddressSource, Evidence};

/// A value of few bits, as a number.
pub(crate) trait Bits: Copy {
    /// As many as its numbers have.
    const N_BITS: u32;

    /// The value as a number.
    fn pack(self) -> u32;

    /// The value of a number that [`Self::pack`] gave.
    fn unpack(bits: u32) -> Self;
}

impl Bits for bool {
    const N_BITS: u32 = 1;

    fn pack(self) -> u32 {
        self.into()
    }

    fn unpack(bits: u32) -> Self {
        bits != 0
    }
}

impl Bits for Option<bool> {
    const N_BITS: u32 = 2;

    fn pack(self) -> u32 {
        self.map_or(0, |it| 1 + u32::from(it))
    }

    fn unpack(bits: u32) -> Self {
        (bits != 0).then_some(bits == 2)
    }
}

macro_rules! bits {
    (named $($type:ident),*) => {$(
        impl Bits for Option<$type> {
            const N_BITS: u32 = u32::BITS - ($type::ALL.len() as u32).leading_zeros();

            /// Nothing is the number after the last, as it is in memory: nothing has to be worked out.
            fn pack(self) -> u32 {
                self.map_or($type::ALL.len() as u32, |it| it as u32)
            }

            fn unpack(bits: u32) -> Self {
                $type::ALL.get(bits as usize).copied()
            }
        }
    )*};
    (flags $($type:ident),*) => {$(
        impl Bits for $type {
            const N_BITS: u32 = Self::N_BITS;

            fn pack(self) -> u32 {
                self.bits().into()
            }

            fn unpack(bits: u32) -> Self {
                Self::of_bits(bits as u8)
            }
        }
    )*};
}

bits!(named Access, Level, Region, Evidence, AddressSource, MemorySegment);
bits!(flags Snoop, Tlb);

macro_rules! packed {
    ($(#[$doc:meta])* $packed:ident($word:ident) of $plain:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $plain {
            $($(#[$field_doc])* pub(crate) $field: $type,)*
        }

        /// The same in few bits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $packed($word);

        impl Default for $packed {
            fn default() -> Self {
                $plain::default().pack()
            }
        }

        impl $plain {
            #[inline]
            pub(crate) fn pack(self) -> $packed {
                let word = 0;
                $(let word = word << <$type as Bits>::N_BITS | self.$field.pack();)*
                $packed(word as $word)
            }
        }

        impl $packed {
            #[inline]
            pub(crate) fn get(self) -> $plain {
                let mut shift: u32 = 0 $(+ <$type as Bits>::N_BITS)*;
                let mut next = |n_bits: u32| {
                    shift -= n_bits;
                    u32::from(self.0) >> shift & ((1 << n_bits) - 1)
                };
                $plain { $($field: <$type>::unpack(next(<$type as Bits>::N_BITS)),)* }
            }
        }

        const _: () = assert!(0 $(+ <$type as Bits>::N_BITS)* <= $word::BITS, "all fit");
    };
}

packed! {
    /// Words of the hardware about one access.
    PackedTold(u32) of Told {
        access: Option<Access>,
        level: Option<Level>,
        snoop: Snoop,
        tlb: Tlb,
        locked: Option<bool>,
        is_remote: bool,
        region: Option<Region>,
    }
}

packed! {
    /// The analysis of one sample, as far as it is no number.
    PackedFound(u16) of Found {
        access: Option<Access>,
        evidence: Option<Evidence>,
        address_source: Option<AddressSource>,
        is_by_frequency: bool,
        /// Kind of memory that the data address is in.
        segment: Option<MemorySegment>,
    }
}

impl PackedTold {
    /// All that is kept of what the hardware told of a sample.
    pub(crate) fn of(sample: &Sample) -> Self {
        let Some(source) = sample.data_source else { return Self::default() };
        let told = Told {
            access: source.access,
            level: source.level,
            snoop: source.snoop,
            tlb: source.tlb,
            locked: source.locked,
            is_remote: source.is_remote,
            region: source.region,
        };
        told.pack()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T: Bits + PartialEq + std::fmt::Debug>(mut put: impl FnMut(T) -> T) {
        let values: Vec<T> = (0..1 << T::N_BITS).map(T::unpack).collect();
        assert!(values.iter().all(|value| put(*value) == *value), "{values:?}");
    }

    #[test]
    fn each_field_has_bits_of_its_own() {
        let full = || {
            let access = Some(Access::Prefetch);
            let told = Told {
                access,
                level: Some(Level::AnyCache),
                snoop: Snoop::PEER.with(Snoop::NONE),
                tlb: Tlb::MISS.with(Tlb::L1),
                locked: Some(true),
                is_remote: true,
                region: Some(Region::Memory7),
            };
            let found = Found {
                access,
                evidence: Evidence::ALL.last().copied(),
                address_source: AddressSource::ALL.last().copied(),
                is_by_frequency: true,
                segment: Some(MemorySegment::Kernel),
            };
            [(told, found), <(Told, Found)>::default()]
        };
        for (told, found) in full() {
            assert_eq!((told.pack().get(), found.pack().get()), (told, found));
            all(|access| Told { access, ..told }.pack().get().access);
            all(|level| Told { level, ..told }.pack().get().level);
            all(|snoop| Told { snoop, ..told }.pack().get().snoop);
            all(|tlb| Told { tlb, ..told }.pack().get().tlb);
            all(|locked| Told { locked, ..told }.pack().get().locked);
            all(|is_remote| Told { is_remote, ..told }.pack().get().is_remote);
            all(|region| Told { region, ..told }.pack().get().region);
            all(|access| Found { access, ..found }.pack().get().access);
            all(|evidence| Found { evidence, ..found }.pack().get().evidence);
            all(|segment| Found { segment, ..found }.pack().get().segment);
        }
        assert_eq!(Told::default().pack(), PackedTold::default());
        assert_eq!(Found::default().pack(), PackedFound::default());
    }
}
