"""Profilers of several settings at once, read by every outlet."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Mapping

from .outlets import IN_TEXT
from .paths import TLSPROF
from .profiler import ATTACH_SECONDS, Agent, Profiling, start_agent
from .tmux import Terminal, terminal
from .together import own_folder, side_by_side


class Watching:
    """An agent of each setting; of the one that is `watched` also reports and `top`."""

    def __init__(
        self,
        folder: Path,
        stack: ExitStack,
        settings: Mapping[str, str],
        watched: str,
        services: list[str],
        interval: int,
    ):
        """`settings`: the lines of their section `[profile]`; `services`: those of the agents, whose live page has
        a history of 25; `interval`: seconds of `top`."""
        configs = {name: folder / f"{name}.toml" for name in settings}
        for name, text in settings.items():
            configs[name].write_text(f"[agent]\nbudget = 1.0\n[profile]\n{text}\n")
        config = ["--config", configs[watched]]

        selected = [word for service in services for word in ("--service", service)]

        def top() -> Terminal:
            shell = stack.enter_context(terminal(folder, 200, 60))
            shell.type(f"{TLSPROF} top --interval {interval}s --config {config[1]}")
            shell.wait_for_text("q quit", timeout=ATTACH_SECONDS)
            return shell

        def agent(name: str) -> Agent:
            return stack.enter_context(start_agent(["--config", configs[name], *selected]))

        def profiling(form: str) -> Profiling:
            return stack.enter_context(Profiling(own_folder(folder, form), *config, form=form))

        starts = {name: partial(agent, name) for name in settings}
        starts |= {"json": partial(profiling, "json"), "text": partial(profiling, "text"), "top": top}
        started = side_by_side(lambda name: starts[name](), starts, len(starts))
        self.watched = watched
        self.agents: dict[str, Agent] = {name: started[name] for name in settings}
        self.report: Profiling = started["json"]
        self.text: Profiling = started["text"]
        self.top: Terminal = started["top"]

    def page(self, name: str, handshakes: int) -> str:
        """That of `top` on the handshakes of a service, once it has so many."""
        self.top.keys("/", name, "Enter")
        self.top.wait_for(lambda screen: f"/{name}" in screen and f" {name} " in screen, name)
        self.top.keys("Enter", "2")

        def complete(screen: str) -> bool:
            found = IN_TEXT.search(screen)
            return name in screen and found is not None and int(found.group(1)) >= handshakes

        page = self.top.wait_for(complete, f"all handshakes of {name}")
        self.top.press_until("Escape", "cores▼")
        self.top.keys("Escape")
        self.top.wait_for(lambda screen: f"/{name}" not in screen, "the whole list")
        return page
