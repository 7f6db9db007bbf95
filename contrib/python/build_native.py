# SPDX-License-Identifier: Apache-2.0
"""The build step of the wheel: compiles a copy of the sources, installs it into a folder, and adds
the programs, the library and the shared libraries that they need to the package.

    draftscope/_native/bin/     draftscope, draftscope-live
    draftscope/_native/lib/     libdraftscope.so.0 and what it and the programs link
    draftscope/_native/share/   published tables and their text, for draftscope validate
    draftscope/_native/notices/ licenses of the libraries of others, where the system has them

The objects find each other by an RPATH relative to their own folder, so that the wheel works
wherever it is installed. Environment: DRAFTSCOPE_CONFIGURE has further arguments of ./configure
(--with-cuda=DIR, --disable-live), MAKEFLAGS those of make. It needs what README.md lists under
Building, and nothing from Python but the standard library.
"""
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SONAME = "libdraftscope.so.0"
# What every Linux system with a Python has, in the same version or a later one: the libraries that
# the manylinux policies permit and that these programs could link.
SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)"
                    r"\.so(\.\d+)*")
# Products of a build, which a copy of the sources leaves out; configure and its kin stay.
PRODUCTS = ("*.o", "*.lo", "*.la", "*.a", "*.log", "*.trs", ".libs", ".deps", ".dirstamp", ".git",
            "autom4te.cache", "__pycache__", "*.dst", "*.egg-info", ".venv", "venv")
AT_TOP = ("Makefile", "config.status", "config.log", "config.h", "libtool", "draftscope",
          "draftscope-live", "draftscope.pc", "demo", "html", "dist", "validate")


def run(*command, cwd=None, env=None):
    print("+", shlex.join(map(str, command)), flush=True)
    subprocess.run([str(x) for x in command], cwd=cwd, check=True, env=env)


def copy_sources(root, to):
    def left_out(folder, names):
        out = set(shutil.ignore_patterns(*PRODUCTS)(folder, names))
        return out | (set(AT_TOP) & set(names) if Path(folder) == Path(root) else set())

    shutil.copytree(root, to, symlinks=True, ignore=left_out)


def compile_and_install(source, stage):
    """Builds the copy of the sources and installs it below `stage`."""
    if not (source / "configure").exists():
        run("./bootstrap", cwd=source)
    # The dynamic linker expands $ORIGIN. An RPATH, unlike a RUNPATH, also holds for the libraries
    # that the packaged libraries need; make reads $$ as $, and the shell must not expand it.
    rpath = "-Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../lib'"
    run("./configure", "--prefix=/usr/local", "--disable-static", "--without-cuda",
        "CFLAGS=" + os.environ.get("CFLAGS", "-O2"),
        *shlex.split(os.environ.get("DRAFTSCOPE_CONFIGURE", "")), cwd=source)
    env = dict(os.environ)
    env.setdefault("MAKEFLAGS", f"-j{os.cpu_count() or 1}")
    run("make", "install-strip", f"DESTDIR={stage}", f"LDFLAGS={rpath}", cwd=source, env=env)
    return stage / "usr/local"


def needed(path):
    """The shared libraries that an object is linked with, all the way down: name and path."""
    out = subprocess.run(["ldd", path], check=True, capture_output=True, text=True,
                         env={**os.environ, "LC_ALL": "C"}).stdout
    for line in out.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and not SYSTEM.fullmatch(os.path.basename(name)):
            if rest.startswith("not found"):
                raise SystemExit(f"build_native: {path} needs {name}, which was not found")
            yield name, Path(rest.rsplit(" (", 1)[0])


def opened_later(source):
    """The library that draftscope-live opens when it is first needed; none when it is linked."""
    config = (source / "config.log").read_text(errors="replace")
    name = re.search(r'^#define OPENBLAS_SONAME "([^"]+)"', config, re.M)
    folder = re.search(r'^#define OPENBLAS_FOLDER "([^"]*)"', config, re.M)
    if name and folder:
        path = Path(folder[1]) / name[1]
        if not path.exists():
            raise SystemExit(f"build_native: {path} is missing, which draftscope-live opens")
        yield name[1], path


def notice_of(path):
    """The file with copyright and license of the Debian package that a library belongs to."""
    for known in dict.fromkeys([str(path), str(path.resolve())]):
        try:
            out = subprocess.run(["dpkg", "-S", known, known.replace("/usr/lib", "/lib", 1)],
                                 capture_output=True, text=True).stdout
        except OSError:
            return None
        for line in out.splitlines():
            notice = Path("/usr/share/doc") / line.split(":")[0] / "copyright"
            if notice.exists():
                return notice
    return None


def gather(source, installed, to):
    """Puts what the package needs into the folder `to`."""
    for folder in ("bin", "lib", "notices"):
        (to / folder).mkdir(parents=True)
    kernels = sorted((installed / "lib/draftscope").glob("*.so"))  # those of CUDA, where it is built in
    objects = [shutil.copy2(x, to / "lib" / x.name) for x in [installed / "lib" / SONAME, *kernels]]
    objects += [shutil.copy2(x, to / "bin") for x in sorted((installed / "bin").iterdir())]
    found = {}
    for name, path in opened_later(source):
        found[name] = path
        objects.append(path)
    for path in objects:
        for name, library in needed(path):
            found.setdefault(name, library)
    for own in [SONAME, *(x.name for x in kernels)]:
        found.pop(own, None)
    for name, path in sorted(found.items()):
        shutil.copy2(path, to / "lib" / name)
        notice = notice_of(path)
        if notice:
            shutil.copy2(notice, to / "notices" / f"{name}.txt")
    shutil.copytree(installed / "share/draftscope", to / "share/draftscope")
    print("packaged:", *sorted(found), flush=True)


class CustomBuildHook(BuildHookInterface):
    """Called by hatchling for a wheel; its files go to draftscope/_native."""

    def initialize(self, version, build_data):
        self.folder = tempfile.TemporaryDirectory(prefix="draftscope-build-")
        work = Path(self.folder.name)
        copy_sources(self.root, work / "source")
        installed = compile_and_install(work / "source", work / "stage")
        gather(work / "source", installed, work / "native")
        build_data["pure_python"] = False
        platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][str(work / "native")] = "draftscope/_native"

    def finalize(self, version, build_data, artifact_path):
        self.folder.cleanup()
