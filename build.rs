//! Compiles the program that `dataspace demo` profiles.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

const SOURCE: &str = "src/demo/workload.c";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CC");
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("cargo::error={message}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), String> {
    let out_dir = env::var_os("OUT_DIR").ok_or("cargo has not set OUT_DIR")?;
    let here = env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?;
    let compiler = env::var("CC").ok().filter(|cc| !cc.trim().is_empty()).unwrap_or("cc".into());
    // `CC="ccache gcc"` is usual.
    let mut words = compiler.split_whitespace();
    let program = words.next().ok_or("CC is empty")?;
    let status = Command::new(program)
        .args(words)
        .args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-o"])
        .arg(Path::new(&out_dir).join("workload"))
        // The bundled debug information is not to tell where this was built.
        .arg(format!("-ffile-prefix-map={here}=."))
        .arg(Path::new(&here).join(SOURCE))
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{compiler}` could not compile {SOURCE}: {status}")),
        Err(error) => Err(format!(
            "`{compiler}` does not run ({error}): a C compiler is needed for the demonstration \
             program; install gcc (apt-get install gcc libc6-dev) or set CC"
        )),
    }
}
