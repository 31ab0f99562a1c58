"""The Hub as publishing sees it: who we are, what is there, and what its refusals mean."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval.io import is_reachable
from dialeval.publishing.uploads import Kind, PublishError, Upload

#: What a disk says that is full, or may not be written.
OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})
CONFLICT = "somebody changed it at the same time; run the same command again to see what differs now"


class HubTrouble(OSError):
    """The Hub or the way to it failed; the same command can be run again."""


@dataclass(frozen=True)
class Remote:
    """A repository as it is on the Hub: names of its files' contents, sizes, tags."""

    private: bool
    commit: str
    files: Mapping[str, str]
    sizes: Mapping[str, int]
    tags: Mapping[str, str]

    @property
    def is_blank(self) -> bool:
        """Whether it holds nothing but what the Hub itself puts into a new repository."""
        return not set(self.files) - {".gitattributes", "README.md"}


class Hub:
    """Questions to the Hub, with its errors in one sentence each. A token is used and never told."""

    def __init__(self) -> None:
        from huggingface_hub import HfApi, constants, get_token

        self.endpoint: str = constants.ENDPOINT
        self.token: str | None = get_token()
        self.api: Any = HfApi(endpoint=self.endpoint, token=self.token or False)
        if constants.HF_HUB_OFFLINE:
            raise PublishError("HF_HUB_OFFLINE is set; unset it to publish")
        if not is_reachable(self.endpoint):
            raise HubTrouble(f"{self.endpoint} cannot be reached; nothing was sent; try again when the network is back")

    def check_writer(self, org: str) -> None:
        """Refuse a missing or powerless token before anything is made."""
        where = (
            f"make one with write access under {self.endpoint}/settings/tokens, then `hf auth login` or set HF_TOKEN"
        )
        if self.token is None:
            raise PublishError(f"there is no token, and publishing needs one; {where}")
        with self.explained("asking whose token this is"):
            me = self.api.whoami()
        role = me.get("auth", {}).get("accessToken", {}).get("role")
        if role == "read":
            raise PublishError(f"the token of {me['name']} can only read; {where}")
        roles = {one["name"]: one.get("roleInOrg") for one in me.get("orgs", ())}
        if org != me["name"] and org not in roles:
            mine = ", ".join([me["name"], *roles])
            raise PublishError(f"the token of {me['name']} cannot write under {org}; choose --org from: {mine}")
        if roles.get(org) == "read":
            raise PublishError(f"{me['name']} may only read in {org}; ask its administrators for the role `write`")

    def look(self, upload: Upload) -> Remote | None:
        """The repository that an upload would go to, or None if there is none (or none that we may see)."""
        from huggingface_hub.errors import RepositoryNotFoundError
        from huggingface_hub.hf_api import RepoFile

        where = {"repo_id": upload.repo_id, "repo_type": upload.kind}
        with self.explained(f"looking at {upload.repo_id}"):
            try:
                info = self.api.repo_info(**where)
            except RepositoryNotFoundError:
                return None
            tree = self.api.list_repo_tree(**where, revision=info.sha, recursive=True)
            files = [entry for entry in tree if isinstance(entry, RepoFile)]
            tags = {tag.name: tag.target_commit for tag in self.api.list_repo_refs(**where).tags}
        names = {file.path: file.lfs.sha256 if file.lfs else file.blob_id for file in files}
        return Remote(bool(info.private), info.sha, names, {file.path: file.size for file in files}, tags)

    def read(self, upload: Upload, path: str, commit: str) -> str:
        """A small text file of a repository."""
        with self.explained(f"reading {path} of {upload.repo_id}"):
            kept = self.api.hf_hub_download(upload.repo_id, path, repo_type=upload.kind, revision=commit)
            return Path(kept).read_text(encoding="utf-8")

    def check_card(self, kind: Kind, repo_id: str, card: str) -> None:
        """The Hub's own check of a card's header, before there is a repository to put it in."""
        from huggingface_hub import get_session, hf_raise_for_status

        with self.explained(f"checking the card of {repo_id}"):
            # Not by `RepoCard.validate`, which in the first versions asks huggingface.co whatever the endpoint is.
            answer = get_session().post(
                f"{self.api.endpoint}/api/validate-yaml",
                json={"repoType": kind, "content": card},
                headers={"Accept": "text/plain"},
            )
            if answer.status_code == 400:
                raise ValueError(answer.text)
            hf_raise_for_status(answer)

    @contextmanager
    def explained(self, doing: str, *, conflict: str = CONFLICT) -> Iterator[None]:
        """Say what an error means and what to do; what the server said is kept, a token in it is not."""
        try:
            yield
        except (PublishError, HubTrouble):
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise self._translated(doing, error, conflict) from None
        except Exception as error:
            # Hub 1 and 2 stand on HTTP libraries of different names; their errors share the base of the Hub's own.
            if not isinstance(error, _transport_error()):
                raise
            raise HubTrouble(f"{doing}: the connection failed ({self._first_line(error)}); run it again") from None

    def _translated(self, doing: str, error: Exception, conflict: str) -> Exception:
        response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
        status = response.status_code if response is not None else None
        said = self._first_line(error)
        if status is None and isinstance(error, OSError) and error.errno in OF_THE_DISK:
            place = f" ({error.filename})" if error.filename else ""
            return HubTrouble(f"{doing}: {error.strerror}{place}; HF_HOME names where the client writes")
        if status == 401:
            return PublishError(f"{doing}: the Hub does not accept the token; log in anew with `hf auth login`")
        if status == 402:
            return PublishError(f"{doing}: the Hub asks for payment first ({said})")
        if status == 403:
            return PublishError(f"{doing}: the token has no right to do this ({said}); give it write access there")
        if status in (409, 412):
            return PublishError(f"{doing}: {conflict}")
        if status is not None and status < 500 and status != 429:
            return PublishError(f"{doing}: the Hub refused it ({said})")
        if isinstance(error, ValueError) and status is None:
            return PublishError(f"{doing}: {said}")
        return HubTrouble(f"{doing}: the Hub or the network failed ({said}); run the same command again")

    def _first_line(self, error: Exception) -> str:
        shown = getattr(error, "server_message", None) or str(error) or type(error).__name__
        lines = [line.strip() for line in str(shown).splitlines() if line.strip()]
        line = lines[0] if lines else type(error).__name__
        return line.replace(self.token, "<token>") if self.token else line


def _transport_error() -> type[Exception]:
    from huggingface_hub.errors import HfHubHTTPError

    return next(base for base in HfHubHTTPError.__mro__ if base.__name__ == "HTTPError")
