//! `weir completions`

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};

use crate::failure::Failure;
use crate::{Cli, output};

/// The arguments of `weir completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions zsh > ~/.zfunc/_weir            with fpath+=(~/.zfunc) before compinit in ~/.zshrc
  weir completions fish > ~/.config/fish/completions/weir.fish

The Debian package installs all three for all users.")]
pub(crate) struct Completions {
    /// Shell that reads the script
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        output::print(&script(self.shell))
    }
}

fn script(shell: Shell) -> String {
    let mut command = visible();
    let mut script = Vec::new();
    match shell {
        Shell::Bash => generate(Bash, &mut command, "weir", &mut script),
        Shell::Fish => generate(Fish, &mut command, "weir", &mut script),
        Shell::Zsh => generate(Zsh, &mut command, "weir", &mut script),
    }
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the command without its hidden subcommands, which the generators would offer.
fn visible() -> clap::Command {
    let all = Cli::command();
    let subcommands = all.get_subcommands().filter(|it| !it.is_hide_set());
    clap::Command::new("weir")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments())
        .subcommands(subcommands)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::{Shell, script};

    #[test]
    fn scripts_offer_visible_commands_and_their_options() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for word in ["enforce", "controller", "completions", "allocation"] {
                assert!(script.contains(word), "{shell:?}: {word}");
            }
            for hidden in [weir_lab::HOST_COMMAND, "manual"] {
                assert!(!script.contains(hidden), "{shell:?}: {hidden}");
            }
        }
    }
}
