"""What publishing would change: each file of each upload beside what the Hub holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.cards.measured import RESULTS_FOLDER, SOURCE
from dialeval.io import parse_json
from dialeval.publishing.hub import Hub, Remote
from dialeval.publishing.uploads import PublishError, Upload


@dataclass(frozen=True)
class PublishOptions:
    """How things shall be published."""

    org: str
    private: bool | None = None
    tag: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class UploadPlan:
    """One repository: what is there, which files would be sent, and what else would change."""

    upload: Upload
    remote: Remote | None
    new: tuple[str, ...]
    changed: tuple[str, ...]
    same: tuple[str, ...]
    #: Results of ours that would stand beside weights they do not belong to.
    gone: tuple[str, ...]
    only_there: tuple[str, ...]
    tag: str | None
    #: The visibility that it shall get; None leaves it as it is.
    private: bool | None

    @property
    def sent(self) -> tuple[str, ...]:
        """Files that would be sent."""
        return (*self.new, *self.changed)

    @property
    def bytes(self) -> int:
        """How much that is."""
        return sum(self.upload.files[name].size for name in self.sent)

    @property
    def is_done(self) -> bool:
        """Whether the Hub holds all this already."""
        return not (self.sent or self.gone) and self.tag is None and self.private is None


def make_plans(uploads: Iterable[Upload], hub: Hub, options: PublishOptions) -> list[UploadPlan]:
    """The plans of all uploads; nothing is sent unless every one of them may be."""
    plans: list[UploadPlan] = []
    for upload in uploads:
        if any(plan.upload.repo_id == upload.repo_id and plan.upload.kind == upload.kind for plan in plans):
            raise PublishError(
                f"two of what you named would become {upload.repo_id}; publish one, or change the name in config.json"
            )
        plans.append(make_plan(upload, hub, options))
    return plans


def make_plan(upload: Upload, hub: Hub, options: PublishOptions) -> UploadPlan:
    """Compare an upload with its repository; refuse what is somebody else's and tags that would have to move."""
    remote = hub.look(upload)
    if remote is not None:
        _check_ours(upload, remote, hub)
    there = remote.files if remote else {}
    known = [name for name in upload.files if name in there]
    same = tuple(name for name in known if upload.files[name].is_same(there[name]))
    changed = tuple(name for name in known if name not in same)
    new = tuple(name for name in upload.files if name not in there)
    if "README.md" in (*new, *changed):
        hub.check_card(upload.kind, upload.repo_id, upload.files["README.md"].text)
    # Only what this run makes is opened unasked: a repository that is there may be private for a reason.
    private = bool(options.private) if remote is None else options.private
    if remote is not None and private == remote.private:
        private = None
    only_there = sorted(set(there) - set(upload.files) - {".gitattributes"})
    gone = tuple(name for name in only_there if remote is not None and _is_old_result(name, upload, remote, hub))
    return UploadPlan(
        upload,
        remote,
        new,
        changed,
        same,
        gone,
        tuple(name for name in only_there if name not in gone),
        _tag_to_set(upload, remote, options.tag, is_changed=bool(new or changed or gone)),
        private,
    )


def described(plans: Sequence[UploadPlan], endpoint: str, options: PublishOptions) -> Iterator[str]:
    """The plan in words, one line per file that would be sent."""
    for plan in plans:
        files, upload = plan.upload.files, plan.upload
        yield f"{_address(upload, endpoint)} ({_state(plan)})"
        for sign, names in (("+", plan.new), ("~", plan.changed)):
            for name in names:
                before = f", now {_size(plan.remote.sizes[name])}" if plan.remote and sign == "~" else ""
                yield f"  {sign} {name}  {_size(files[name].size)}{before}"
        yield from (f"  - {name}  results of other weights" for name in plan.gone)
        if plan.same:
            yield f"  = {len(plan.same)} files are there already"
        if plan.only_there:
            yield f"  only there, and left alone: {', '.join(plan.only_there)}"
        if plan.tag:
            yield f"  tag {plan.tag}"
        if plan.remote and plan.remote.private and plan.private is None and not options.private:
            yield "  note: it stays private; --public opens it"
        yield from (f"  note: {note}" for note in upload.notes)
    count, size = sum(len(plan.sent) for plan in plans), sum(plan.bytes for plan in plans)
    yield f"{len(plans)} repositories, {count} files to send, {_size(size)} (+ new, ~ changed, - removed, = the same)"


def _address(upload: Upload, endpoint: str) -> str:
    return f"{endpoint}/{'spaces/' if upload.kind == 'space' else ''}{upload.repo_id}"


def _state(plan: UploadPlan) -> str:
    seen = {True: "private", False: "public"}
    if plan.remote is None:
        return f"new {plan.upload.kind}, {seen[bool(plan.private)]}"
    if plan.is_done:
        return f"{plan.upload.kind}, {seen[plan.remote.private]}, nothing to do"
    turned = f", becomes {seen[plan.private]}" if plan.private is not None else ""
    return f"{plan.upload.kind}, {seen[plan.remote.private]}{turned}"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000 or unit == "MB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def _tag_to_set(upload: Upload, remote: Remote | None, tag: str | None, *, is_changed: bool) -> str | None:
    if tag is None or remote is None or tag not in remote.tags:
        return tag
    if is_changed or remote.tags[tag] != remote.commit:
        raise PublishError(
            f"{upload.repo_id} has a tag {tag} at {remote.tags[tag][:8]}, and what would be published differs from it; "
            "tags do not move: choose a new --tag"
        )
    return None


def _is_old_result(name: str, upload: Upload, remote: Remote, hub: Hub) -> bool:
    return name.startswith(RESULTS_FOLDER) and SOURCE in hub.read(upload, name, remote.commit)


#: What the Hub's forms for a new repository put into a card's header.
_OF_FORMS = frozenset(
    "app_file app_port colorFrom colorTo emoji license license_link license_name pinned python_version sdk sdk_version "
    "short_description suggested_hardware tags title".split()
)
#: Bytes of a file that is read to see whose a repository is; its owner may have put anything there.
_MOST_READ = 2**20
_REQUIRED = re.compile(r"^\s*dialeval\s*(\[|[<>=~!;@#]|$)", re.MULTILINE | re.IGNORECASE)


def _is_the_hubs(card: str) -> bool:
    """Whether a card has nothing but the header that a form of the Hub makes, and the line below a new Space's."""
    header, body = _parts(card)
    if header is None or set(header) - _OF_FORMS:
        return False
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    return all(
        line.startswith("Check out the configuration reference at https://huggingface.co/docs") for line in lines
    )


def _parts(card: str) -> tuple[dict[str, Any] | None, str]:
    """A card's header, None if it is none, and its text."""
    import yaml

    found = re.match(r"\A\s*---[ \t]*\r?\n(.*?\r?\n)??---[ \t]*(\r?\n|\Z)", card, flags=re.DOTALL)
    if found is None:
        return {}, card
    try:
        header = yaml.safe_load(found[1] or "")
    except (yaml.YAMLError, ValueError, RecursionError):
        return None, card
    return (header if isinstance(header, dict) else None if header else {}), card[found.end() :]


def _check_ours(upload: Upload, remote: Remote, hub: Hub) -> None:
    """Refuse to write over a repository that dialeval did not make."""
    advice = "choose another --org, or rename or delete that repository on its page"

    def read(name: str) -> str:
        if remote.sizes.get(name, 0) > _MOST_READ:
            raise PublishError(f"{upload.repo_id} exists and its {name} is none of dialeval's; {advice}")
        return hub.read(upload, name, remote.commit)

    if remote.is_blank:
        if "README.md" in remote.files and not _is_the_hubs(read("README.md")):
            raise PublishError(f"{upload.repo_id} exists and somebody wrote its README; {advice}")
        return
    marker = "config.json" if upload.kind == "model" else "requirements.txt"
    if marker not in remote.files:
        raise PublishError(f"{upload.repo_id} exists and is not dialeval's (it has no {marker}); {advice}")
    text = read(marker)
    if upload.kind == "space":
        # Others may need dialeval, too: the Space that is published has the same title each time.
        title, theirs = (
            str((_parts(card)[0] or {}).get("title"))
            for card in (upload.files["README.md"].text, read("README.md") if "README.md" in remote.files else "")
        )
        if not _REQUIRED.search(text) or title != theirs:
            raise PublishError(f"{upload.repo_id} exists and is not a Space of dialeval with this title; {advice}")
        return
    try:
        raw = parse_json(text)
    except ValueError:
        raw = None
    if not isinstance(raw, dict) or raw.get("model_type") != "dialeval":
        raise PublishError(f"{upload.repo_id} exists and is not a checkpoint of dialeval; {advice}")
    if raw.get("approach") != upload.approach:
        held = str(raw.get("approach"))[:40]
        raise PublishError(f"{upload.repo_id} holds a checkpoint of {held}, not of {upload.approach}; {advice}")
