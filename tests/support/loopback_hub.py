"""A Hub on 127.0.0.1, in memory, for tests: real clients talk to it when HF_ENDPOINT names it.

It answers what huggingface_hub, transformers, datasets and evaluate ask when they download, create
repositories and commit. It has users with tokens, private repositories, branches and tags, large
files (`.safetensors`), and can be told to fail.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit


class Blob(NamedTuple):
    """A file's content, and whether it is stored as a large one."""

    data: bytes
    large: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def oid(self) -> str:
        """The name that git gives it; of a large file git sees the pointer."""
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(self.data)}\n"
        body = pointer.encode() if self.large else self.data
        return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


class Commit(NamedTuple):
    """A state of a repository."""

    title: str
    files: Mapping[str, Blob]


@dataclass
class Repo:
    """A repository: commits by name, and what points to them."""

    kind: str
    id: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, title: str, files: Mapping[str, Blob]) -> str:
        shown = json.dumps([self.refs.get("main"), title, {path: blob.oid for path, blob in sorted(files.items())}])
        oid = hashlib.sha1(shown.encode()).hexdigest()
        self.commits[oid] = Commit(title, dict(files))
        self.refs["main"] = oid
        return oid

    @property
    def files(self) -> dict[str, bytes]:
        """What is on the main branch, without what every repository starts with."""
        now = self.commits[self.refs["main"]].files
        return {path: blob.data for path, blob in now.items() if path != ".gitattributes"}

    def resolve(self, revision: str) -> str:
        oid = self.refs.get(revision) or self.tags.get(revision) or revision
        if oid not in self.commits:
            raise Refused(404, "RevisionNotFound")
        return oid


class User(NamedTuple):
    """Whom a token stands for, and in which namespaces it may write."""

    name: str
    orgs: Mapping[str, str] = {}
    role: str = "write"

    def may_write(self, namespace: str) -> bool:
        return self.role == "write" and (namespace == self.name or self.orgs.get(namespace) in ("write", "admin"))


@dataclass
class Fault:
    """What shall go wrong with the next requests that fit: a status, or a connection cut after some bytes."""

    method: str
    pattern: str
    status: int | None = None
    cut_after: int = 0
    times: int = 1


class Asked(NamedTuple):
    """A request that came."""

    method: str
    path: str
    status: int
    token: str | None


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str = "", message: str = "", **body: Any) -> None:
        self.status, self.code, self.message, self.body = status, code, message, {"error": message or code, **body}


class LoopbackHub(ThreadingHTTPServer):
    """The server; use it in a `with` statement."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.users: dict[str, User] = {}
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.asked: list[Asked] = []
        self.faults: list[Fault] = []
        self.lock = threading.RLock()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *about: Any) -> None:
        """A client that goes away in the middle is no news."""

    def environment(self, home: Any, token: str | None = None) -> dict[str, str]:
        """Variables with which a process talks to this Hub and keeps its caches under `home`."""
        online = {"HF_ENDPOINT": self.url, "HF_HUB_OFFLINE": "0", "HF_EVALUATE_OFFLINE": "0", "HF_HOME": str(home)}
        quiet = {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_UPDATE_DOWNLOAD_COUNTS": "0"}
        return {**online, **quiet, "HF_HUB_DISABLE_PROGRESS_BARS": "1", **({"HF_TOKEN": token} if token else {})}

    def add(self, kind: str, repo_id: str, files: Mapping[str, bytes], *, private: bool = False) -> Repo:
        """Make a repository, or commit to it, without asking anybody."""
        repo = self.repos.setdefault((kind, repo_id), Repo(kind, repo_id, private))
        now = repo.commits[repo.refs["main"]].files if repo.refs else {".gitattributes": Blob(b"", False)}
        repo.commit("seeded", {**now, **{path: Blob(data, is_large(path)) for path, data in files.items()}})
        return repo

    def uploads(self) -> list[Asked]:
        """The requests that carried content, made or changed something."""
        changing = r"/commit/|/lfs/objects|/upload/|/repos/create|/tag/|/settings"
        return [one for one in self.asked if one.method != "GET" and re.search(changing, one.path)]

    def fault_of(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.method == method and re.search(fault.pattern, path):
                    fault.times -= 1
                    return fault
        return None


def is_large(path: str) -> bool:
    return path.endswith((".safetensors", ".parquet"))


KIND = r"(?P<kind>models|datasets|spaces)"
ID = r"(?P<id>[^/]+/[^/]+)"
ROUTES = [
    ("GET", r"/api/whoami-v2", "whoami"),
    ("POST", r"/api/validate-yaml", "validate_yaml"),
    ("POST", r"/api/repos/create", "create"),
    ("GET", rf"/api/{KIND}/{ID}(?:/revision/(?P<revision>[^/]+))?", "info"),
    ("GET", rf"/api/{KIND}/{ID}/refs", "refs"),
    ("PUT", rf"/api/{KIND}/{ID}/settings", "settings"),
    ("GET", rf"/api/{KIND}/{ID}/tree/(?P<revision>[^/]+)(?:/(?P<path>.*))?", "tree"),
    ("POST", rf"/api/{KIND}/{ID}/paths-info/(?P<revision>[^/]+)", "paths_info"),
    ("POST", rf"/api/{KIND}/{ID}/preupload/(?P<revision>[^/]+)", "preupload"),
    ("POST", rf"/api/{KIND}/{ID}/commit/(?P<revision>[^/]+)", "commit"),
    ("POST", rf"/api/{KIND}/{ID}/tag/(?P<revision>[^/]+)", "tag"),
    ("POST", rf"/(?:{KIND}/)?{ID}\.git/info/lfs/objects/batch", "lfs_batch"),
    ("PUT", r"/upload/(?P<oid>\w+)", "lfs_upload"),
    ("GET", rf"/(?:{KIND}/)?{ID}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
]


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: LoopbackHub

    def log_message(self, *about: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.query = parse_qs(url.query)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        self.fault = self.server.fault_of(self.command, url.path)
        try:
            if self.fault and self.fault.status:
                # A server that repeats what it was sent, as some proxies do.
                raise Refused(self.fault.status, message=f"told to fail for {self.token}")
            if self.fault and not self.fault.cut_after:
                return self.hang_up()
            with self.server.lock:
                answer = self.route(url.path)
            self.answer(200, *answer)
        except Refused as refused:
            headers = {"X-Error-Code": refused.code, "X-Error-Message": refused.message}
            self.answer(refused.status, refused.body, {key: value for key, value in headers.items() if value})

    do_POST = do_PUT = do_HEAD = do_GET

    def route(self, path: str) -> tuple[Any, dict[str, str]]:
        if self.token and self.token not in self.server.users:
            raise Refused(401, message="Invalid credentials in Authorization header")
        self.user = self.server.users.get(self.token or "")
        for method, pattern, name in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and self.command in (method, "HEAD" if method == "GET" else method):
                parts = {key: unquote(value) for key, value in found.groupdict().items() if value is not None}
                repo = self.repo(parts.pop("kind", "models"), parts.pop("id")) if "id" in parts else None
                answer = getattr(self, name)(*([repo] if repo else []), **parts)
                return answer if isinstance(answer, tuple) else (answer, {})
        raise Refused(501, message=f"this Hub does not know {self.command} {path}")

    def answer(self, status: int, body: Any, headers: Mapping[str, str] = {}) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        start = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "") if status == 200 else None
        size = len(data)
        if start:
            first, last = int(start[1]), min(int(start[2] or size), size - 1)
            status, data = 206, data[first : last + 1]
            headers = {**headers, "Content-Range": f"bytes {first}-{last}/{size}"}
        self.server.asked.append(Asked(self.command, self.path, status, self.token))
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data)), "Accept-Ranges": "bytes"}.items():
            self.send_header(key, value)
        self.end_headers()
        is_cut = self.fault is not None and self.fault.cut_after
        if self.command != "HEAD":
            self.wfile.write(data[: self.fault.cut_after] if self.fault and is_cut else data)
        if is_cut:
            self.hang_up()

    def hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def repo(self, kind: str, repo_id: str) -> Repo:
        repo = self.server.repos.get((kind, repo_id))
        namespace = repo_id.split("/")[0]
        is_member = self.user is not None and (namespace == self.user.name or namespace in self.user.orgs)
        if repo is None or (repo.private and not is_member):
            # Whether it is missing or hidden is nobody's business; without a token it is 401.
            raise Refused(404, "RepoNotFound", "Repository not found") if self.user else Refused(401, "RepoNotFound")
        if self.command in ("POST", "PUT") and "/paths-info/" not in self.path:
            self.check_writer(namespace)
        return repo

    def check_writer(self, namespace: str) -> None:
        if self.user is None:
            raise Refused(401, message="Invalid username or password.")
        if not self.user.may_write(namespace):
            raise Refused(403, message=f"You don't have the rights to write under the namespace {namespace}")

    # --- endpoints ---------------------------------------------------------------------------------

    def whoami(self) -> Any:
        if self.user is None:
            raise Refused(401, message="Invalid username or password.")
        orgs = [{"name": name, "roleInOrg": role, "type": "org"} for name, role in self.user.orgs.items()]
        access = {"accessToken": {"displayName": "test", "role": self.user.role}}
        return {"type": "user", "name": self.user.name, "orgs": orgs, "auth": access}

    def validate_yaml(self) -> Any:
        content = json.loads(self.body)["content"]
        if re.match(r"---\n(\w[\w-]*:.*\n)([ #-].*\n|\w[\w-]*:.*\n)*---\n", content):
            return {"errors": [], "warnings": []}
        raise Refused(400, message="Bad YAML", errors=[{"message": "metadata is not a block of keys"}], warnings=[])

    def create(self) -> Any:
        asked = json.loads(self.body)
        assert self.user is not None or self.check_writer("") is None
        namespace = asked.get("organization") or self.user.name  # type: ignore[union-attr]
        kind, repo_id = f"{asked.get('type') or 'model'}s", f"{namespace}/{asked['name']}"
        self.check_writer(namespace)
        address = f"{self.server.url}/{'' if kind == 'models' else kind + '/'}{repo_id}"
        if (kind, repo_id) in self.server.repos:
            raise Refused(409, message="You already created this repo", url=address)
        repo = self.server.add(kind, repo_id, {}, private=asked.get("visibility") == "private")
        return {"url": address, "name": repo.id, "id": repo.id}

    def info(self, repo: Repo, revision: str = "main") -> Any:
        oid = repo.resolve(revision)
        siblings = [{"rfilename": path} for path in repo.commits[oid].files]
        common = {"id": repo.id, "modelId": repo.id, "sha": oid, "private": repo.private, "siblings": siblings}
        return {**common, "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0}

    def refs(self, repo: Repo) -> Any:
        def shown(refs: Mapping[str, str], kind: str) -> list[dict[str, str]]:
            return [{"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid} for name, oid in refs.items()]

        return {"branches": shown(repo.refs, "heads"), "tags": shown(repo.tags, "tags"), "converts": []}

    def settings(self, repo: Repo) -> Any:
        repo.private = json.loads(self.body)["visibility"] == "private"
        return {"visibility": "private" if repo.private else "public"}

    def tree(self, repo: Repo, revision: str, path: str = "") -> Any:
        files = repo.commits[repo.resolve(revision)].files
        below = {name: blob for name, blob in files.items() if not path or name.startswith(f"{path}/")}
        if path and not below:
            raise Refused(404, "EntryNotFound")
        start = len(path) + 1 if path else 0
        folders = dict.fromkeys(name[: name.index("/", start)] for name in below if "/" in name[start:])
        is_deep = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        shown = below if is_deep else {name: blob for name, blob in below.items() if "/" not in name[start:]}
        return [{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in folders] + entries(shown)

    def paths_info(self, repo: Repo, revision: str) -> Any:
        asked = json.loads(self.body)["paths"] if self.body[:1] == b"{" else parse_qs(self.body.decode())["paths"]
        files = repo.commits[repo.resolve(revision)].files
        folders = [name for name in asked if any(path.startswith(f"{name}/") for path in files)]
        found = entries({name: files[name] for name in asked if name in files})
        return [{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in folders] + found

    def preupload(self, repo: Repo, revision: str) -> Any:
        now = repo.commits[repo.resolve(revision)].files
        modes = []
        for file in json.loads(self.body)["files"]:
            path, known = file["path"], now.get(file["path"])
            mode: Literal["lfs", "regular"] = "lfs" if is_large(path) else "regular"
            oid = {"oid": known.oid} if known else {}
            modes.append({"path": path, "uploadMode": mode, "shouldIgnore": False, **oid})
        return {"files": modes}

    def lfs_batch(self, repo: Repo) -> Any:
        objects = []
        for one in json.loads(self.body)["objects"]:
            upload = {"upload": {"href": f"{self.server.url}/upload/{one['oid']}"}}
            objects.append({**one, **({} if one["oid"] in self.server.objects else {"actions": upload})})
        return {"transfer": "basic", "objects": objects}

    def lfs_upload(self, oid: str) -> Any:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Refused(400, message="the content is not what its name says")
        self.server.objects[oid] = self.body
        return {}

    def commit(self, repo: Repo, revision: str) -> Any:
        lines = [json.loads(line) for line in self.body.splitlines()]
        about, changes = lines[0]["value"], [(line["key"], line["value"]) for line in lines[1:]]
        if about.get("parentCommit") not in (None, repo.refs[revision]):
            raise Refused(412, message="A commit has happened since. Please refresh and try again.")
        files = dict(repo.commits[repo.refs[revision]].files)
        for key, value in changes:
            if key == "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]), False)
            elif key == "lfsFile":
                files[value["path"]] = Blob(self.server.objects[value["oid"]], True)
            elif key == "deletedFile":
                del files[value["path"]]
        oid = repo.commit(about["summary"], files)
        address = f"{self.server.url}/{repo.id}/commit/{oid}"
        return {"success": True, "commitOid": oid, "commitUrl": address, "hookOutput": ""}

    def tag(self, repo: Repo, revision: str) -> Any:
        name = json.loads(self.body)["tag"]
        if name in repo.tags:
            raise Refused(409, message="Tag reference exists already")
        repo.tags[name] = repo.resolve(revision)
        return {}

    def resolve(self, repo: Repo, revision: str, path: str) -> Any:
        oid = repo.resolve(revision)
        blob = repo.commits[oid].files.get(path)
        if blob is None:
            raise Refused(404, "EntryNotFound", "Entry not found")
        large = {"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(len(blob.data))} if blob.large else {}
        return blob.data, {"X-Repo-Commit": oid, "ETag": f'"{blob.oid}"', **large}


def entries(files: Mapping[str, Blob] | Iterable[tuple[str, Blob]]) -> list[dict[str, Any]]:
    """Files as the tree endpoints tell them."""
    lines = []
    for path, blob in dict(files).items():
        large = {"lfs": {"oid": blob.sha256, "size": len(blob.data), "pointerSize": 134}} if blob.large else {}
        lines.append({"type": "file", "path": path, "size": len(blob.data), "oid": blob.oid, **large})
    return lines
