"""`completion SHELL`: the script that makes a shell complete our commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

_BASH = """\
_verderer_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
                   _VERDERER_COMPLETE=complete_bash "$1" ) )
    return 0
}
complete -o default -F _verderer_completion verderer
"""
_ZSH = """\
#compdef verderer
_verderer_completion() {
    eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _VERDERER_COMPLETE=complete_zsh verderer)
}
compdef _verderer_completion verderer
"""
_FISH = """\
complete --command verderer --no-files \\
    --arguments "(env _VERDERER_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \\
_TYPER_COMPLETE_ARGS=(commandline -cp) verderer)" \\
    --condition "env _VERDERER_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=is-args \\
_TYPER_COMPLETE_ARGS=(commandline -cp) verderer"
"""


class Shell(StrEnum):
    """Shells that can complete our commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(
    shell: Annotated[Shell, typer.Argument(help="For which shell.")],
) -> None:
    """Print the script that completes commands and options.

    bash: source <(verderer completion bash). zsh: put it as _verderer into a folder of $fpath.
    fish: verderer completion fish > ~/.config/fish/completions/verderer.fish
    """
    print(_SCRIPTS[shell], end="")
