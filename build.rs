//! Compiles the programs that this binary carries: what `dataspace demo` profiles, and what
//! `dataspace doctor --calibrate` measures with.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The sources; each program is called after its directory.
const SOURCES: [&str; 2] = ["src/demo/workload.c", "src/calibration/workload.c"];

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=CC");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        if let Err(message) = compile(source) {
            println!("cargo::error={message}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn compile(source: &str) -> Result<(), String> {
    let out_dir = env::var_os("OUT_DIR").ok_or("cargo has not set OUT_DIR")?;
    let here = env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?;
    let name = Path::new(source).parent().and_then(Path::file_name).ok_or("no directory")?;
    let compiler = env::var("CC").ok().filter(|cc| !cc.trim().is_empty()).unwrap_or("cc".into());
    // `CC="ccache gcc"` is usual.
    let mut words = compiler.split_whitespace();
    let program = words.next().ok_or("CC is empty")?;
    let status = Command::new(program)
        .args(words)
        .args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-o"])
        .arg(Path::new(&out_dir).join(name))
        // The bundled debug information is not to tell where this was built.
        .arg(format!("-ffile-prefix-map={here}=."))
        .arg(Path::new(&here).join(source))
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{compiler}` could not compile {source}: {status}")),
        Err(error) => Err(format!(
            "`{compiler}` does not run ({error}): a C compiler is needed for the bundled \
             programs; install gcc (apt-get install gcc libc6-dev) or set CC"
        )),
    }
}
