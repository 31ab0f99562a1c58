"""A Hub on 127.0.0.1, in memory, for tests: real clients talk to it when HF_ENDPOINT names it.

It answers what huggingface_hub, transformers and evaluate ask when they download, create repositories and commit,
with tokens, private repositories, tags and large files (`.safetensors`); what it does not know gets a 501.
"""

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit


class Blob(NamedTuple):
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
    title: str
    files: Mapping[str, Blob]


@dataclass
class Repo:
    """A repository: commits by name, and what points to them."""

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
    """Whom a token stands for, and what it may do in which organisations."""

    name: str
    orgs: Mapping[str, str]


class Asked(NamedTuple):
    method: str
    path: str
    status: int


class Refused(Exception):
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
        #: Endpoints that do not work, with the status that they answer, or with a page; 0 hangs up, -1 after a while.
        self.broken: dict[str, int | bytes] = {}
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
        repo = self.repos.setdefault((kind, repo_id), Repo(repo_id, private))
        now = repo.commits[repo.refs["main"]].files if repo.refs else {".gitattributes": Blob(b"", False)}
        repo.commit("seeded", {**now, **{path: Blob(data, is_large(path)) for path, data in files.items()}})
        return repo

    def uploads(self) -> list[Asked]:
        """The requests that carried content, made or changed something."""
        changing = r"/commit/|/lfs/objects|/upload/|/repos/create|/tag/"
        return [one for one in self.asked if one.method != "GET" and re.search(changing, one.path)]


def is_large(path: str) -> bool:
    return path.endswith(".safetensors")


KIND = r"(?P<kind>models|datasets|spaces)"
ID = r"(?P<id>[^/]+/[^/]+)"
ROUTES = [
    ("POST", r"/api/validate-yaml", "validate_yaml"),
    ("POST", r"/api/repos/create", "create"),
    ("GET", rf"/api/{KIND}/{ID}(?:/revision/(?P<revision>[^/]+))?", "info"),
    ("GET", rf"/api/{KIND}/{ID}/tree/(?P<revision>[^/]+)", "tree"),
    ("POST", rf"/api/{KIND}/{ID}/preupload/(?P<revision>[^/]+)", "preupload"),
    ("POST", rf"/api/{KIND}/{ID}/commit/(?P<revision>[^/]+)", "commit"),
    ("POST", rf"/api/{KIND}/{ID}/tag/(?P<revision>[^/]+)", "tag"),
    ("POST", rf"/(?:{KIND}/)?{ID}\.git/info/lfs/objects/batch", "lfs_batch"),
    ("PUT", r"/upload/(?P<oid>\w+)", "lfs_upload"),
    ("GET", rf"/(?:{KIND}/)?{ID}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LoopbackHub

    def log_message(self, *about: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        self.user = self.server.users.get(token)
        try:
            if token and self.user is None:
                raise Refused(401, message="Invalid credentials in Authorization header")
            with self.server.lock:
                answer = self.route(url.path)
            self.answer(200, *answer)
        except Refused as refused:
            headers = {"X-Error-Code": refused.code, "X-Error-Message": refused.message}
            self.answer(refused.status, refused.body, {key: value for key, value in headers.items() if value})

    do_POST = do_PUT = do_HEAD = do_GET

    def route(self, path: str) -> tuple[Any, dict[str, str]]:
        for method, pattern, name in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and self.command in (method, "HEAD" if method == "GET" else method):
                parts = {key: unquote(value) for key, value in found.groupdict().items() if value is not None}
                if isinstance(broken := self.server.broken.get(name), bytes):
                    return broken, {}
                if broken is not None:
                    raise Refused(broken, message="Internal Server Error")
                repo = self.repo(parts.pop("kind", "models"), parts.pop("id")) if "id" in parts else None
                answer = getattr(self, name)(*([repo] if repo else []), **parts)
                return answer if isinstance(answer, tuple) else (answer, {})
        raise Refused(501, message=f"this Hub does not know {self.command} {path}")

    def answer(self, status: int, body: Any, headers: Mapping[str, str] = {}) -> None:
        if status <= 0:
            time.sleep(-5 * status)
            self.close_connection = True
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.server.asked.append(Asked(self.command, self.path, status))
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def repo(self, kind: str, repo_id: str) -> Repo:
        repo = self.server.repos.get((kind, repo_id))
        namespace = repo_id.split("/")[0]
        is_member = self.user is not None and (namespace == self.user.name or namespace in self.user.orgs)
        if repo is None or (repo.private and not is_member):
            # Whether it is missing or hidden is nobody's business; without a token it is 401.
            raise Refused(404 if self.user else 401, "RepoNotFound", "Repository not found")
        if self.command in ("POST", "PUT"):
            self.check_writer(namespace)
        return repo

    def check_writer(self, namespace: str) -> None:
        if self.user is None:
            raise Refused(401, message="Invalid username or password.")
        if namespace != self.user.name and self.user.orgs.get(namespace) != "write":
            raise Refused(403, message=f"You don't have the rights to write under the namespace {namespace}")

    # --- endpoints ---------------------------------------------------------------------------------

    def validate_yaml(self) -> Any:
        content = json.loads(self.body)["content"]
        if re.match(r"---\n(\w[\w-]*:.*\n)([ #-].*\n|\w[\w-]*:.*\n)*---\n", content):
            return {"errors": [], "warnings": []}
        raise Refused(400, message="Bad YAML", errors=[{"message": "metadata is not a block of keys"}], warnings=[])

    def create(self) -> Any:
        asked = json.loads(self.body)
        namespace = asked.get("organization") or (self.user.name if self.user else "")
        kind, repo_id = f"{asked.get('type') or 'model'}s", f"{namespace}/{asked['name']}"
        self.check_writer(namespace)
        address = f"{self.server.url}/{'' if kind == 'models' else kind + '/'}{repo_id}"
        if (kind, repo_id) in self.server.repos:
            raise Refused(409, message="You already created this repo", url=address)
        self.server.add(kind, repo_id, {}, private=asked.get("visibility") == "private")
        return {"url": address, "name": repo_id, "id": repo_id}

    def info(self, repo: Repo, revision: str = "main") -> Any:
        oid = repo.resolve(revision)
        siblings = [{"rfilename": path} for path in repo.commits[oid].files]
        return {"id": repo.id, "sha": oid, "private": repo.private, "siblings": siblings, "tags": [], "downloads": 0}

    def tree(self, repo: Repo, revision: str) -> Any:
        lines = []
        for path, blob in repo.commits[repo.resolve(revision)].files.items():
            large = {"lfs": {"oid": blob.sha256, "size": len(blob.data), "pointerSize": 134}} if blob.large else {}
            lines.append({"type": "file", "path": path, "size": len(blob.data), "oid": blob.oid, **large})
        return lines

    def preupload(self, repo: Repo, revision: str) -> Any:
        now = repo.commits[repo.resolve(revision)].files
        modes = []
        for path in (file["path"] for file in json.loads(self.body)["files"]):
            mode = "lfs" if is_large(path) else "regular"
            # By this the client knows what has not changed: git's name of a file, of a large one its sha256.
            known = {"oid": now[path].sha256 if now[path].large else now[path].oid} if path in now else {}
            modes.append({"path": path, "uploadMode": mode, "shouldIgnore": False, **known})
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
        files = dict(repo.commits[repo.refs[revision]].files)
        for key, value in ((line["key"], line["value"]) for line in lines[1:]):
            if key == "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]), False)
            elif key == "lfsFile":
                files[value["path"]] = Blob(self.server.objects[value["oid"]], True)
            else:
                raise Refused(501, message=f"this Hub does not know {key} in a commit")
        oid = repo.commit(lines[0]["value"]["summary"], files)
        return {"success": True, "commitOid": oid, "commitUrl": f"{self.server.url}/{repo.id}/commit/{oid}"}

    def tag(self, repo: Repo, revision: str) -> Any:
        tag = json.loads(self.body)["tag"]
        if tag in repo.tags:
            raise Refused(409, message="This tag already exists")
        repo.tags[tag] = repo.resolve(revision)
        return {}

    def resolve(self, repo: Repo, revision: str, path: str) -> Any:
        oid = repo.resolve(revision)
        blob = repo.commits[oid].files.get(path)
        if blob is None:
            raise Refused(404, "EntryNotFound", "Entry not found")
        large = {"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(len(blob.data))} if blob.large else {}
        return blob.data, {"X-Repo-Commit": oid, "ETag": f'"{blob.oid}"', **large}
