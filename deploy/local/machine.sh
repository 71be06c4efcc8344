#!/usr/bin/env bash
# What Muster needs of the machine it is built and tested on.
#
#   machine.sh doctor                     print what is there, what is missing and how to get it
#   machine.sh install postgres compiler  install what is missing, where that is possible;
#                                         "images" is what making container images takes
#
# Exit status: 0 all there, 3 something is missing.
set -euo pipefail

go_wanted=1.26
postgres_wanted=15
disk_wanted_gb=12

missing=0
have() { printf '  ok       %-10s %s\n' "$1" "$2"; }
lack() {
	printf '  MISSING  %-10s %s\n' "$1" "$2"
	missing=1
}
optional() { printf '  absent   %-10s %s\n' "$1" "$2"; }

# postgres_dir prints the directory of a Postgres server that serves. It looks
# where package localpg does.
postgres_dir() {
	local dir version
	while IFS= read -r dir; do
		[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] || continue
		version=$("$dir/postgres" --version | grep -oE '[0-9]+' | head -n 1)
		if [ "$version" -ge "$postgres_wanted" ]; then
			echo "$dir"
			return
		fi
	done < <({
		printf '%s\n' /usr/lib/postgresql/*/bin | sort -Vr
		pg_config --bindir 2>/dev/null || true
		dirname "$(realpath "$(command -v initdb)" 2>/dev/null || echo /nowhere/initdb)"
	})
	return 1
}

# compiler_works reports whether a C program with libc's headers compiles; Go's
# race detector needs that.
compiler_works() {
	local compiler
	compiler=$(go env CC)
	echo '#include <stdlib.h>' | "${compiler%% *}" -E - >/dev/null 2>&1
}

# free_gb prints the space on the disk of a folder that may not exist yet.
free_gb() {
	local dir=$1
	until [ -d "$dir" ]; do dir=$(dirname "$dir"); done
	df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }'
}

# as_root runs a command with the right to install, or returns 1 without it.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 1
	fi
}

can_install() { command -v apt-get >/dev/null && as_root true; }

apt_install() {
	echo "installing $* from the distribution" >&2
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

refreshed=no
apt_refresh() {
	[ $refreshed = no ] || return 0
	refreshed=yes
	echo "reading the distribution's package lists" >&2
	as_root apt-get update -qq >/dev/null
}

newest_postgres_package() {
	apt-cache --names-only search '^postgresql-[0-9]+$' | grep -oE '^postgresql-[0-9]+' | sort -V | tail -n 1
}

install_postgres() {
	if [ -n "${MUSTER_DATABASE_URL:-}" ] || postgres_dir >/dev/null; then return; fi
	if ! can_install; then
		cat >&2 <<-MESSAGE
			Postgres $postgres_wanted or newer is not on this machine, and it cannot be installed from here.
			Either install it:      apt-get install postgresql     (as root; its service need not run)
			or name a server:       MUSTER_DATABASE_URL=postgres://user:password@host/database
		MESSAGE
		return 3
	fi
	apt_refresh
	local package drop=/etc/postgresql-common/createcluster.d/muster.conf
	package=$(newest_postgres_package)
	if [ -z "$package" ] || [ "${package#postgresql-}" -lt "$postgres_wanted" ]; then
		echo "the distribution has no Postgres $postgres_wanted or newer (newest: ${package:-none}); name a server with MUSTER_DATABASE_URL" >&2
		return 3
	fi
	# Only the programs are wanted: without this the package makes a database
	# cluster of its own and starts it on port 5432.
	as_root mkdir -p "${drop%/*}"
	echo 'create_main_cluster = false' | as_root tee "$drop" >/dev/null
	apt_install "$package"
	as_root rm -f "$drop"
}

install_compiler() {
	if compiler_works; then return; fi
	if ! can_install; then
		cat >&2 <<-'MESSAGE'
			The race detector needs a C compiler, and none can be installed from here.
			Install one:   apt-get install gcc libc6-dev     (as root)
		MESSAGE
		return 3
	fi
	apt_refresh
	apt_install gcc libc6-dev
}

install_browser() {
	if command -v chromium >/dev/null; then return; fi
	if ! can_install; then
		cat >&2 <<-'MESSAGE'
			The tests of the console need Chromium, and it cannot be installed from here.
			Install it:   apt-get install chromium     (as root)
		MESSAGE
		return 3
	fi
	apt_refresh
	apt_install chromium
}

install_images() {
	if command -v mmdebstrap >/dev/null; then return; fi
	if ! can_install; then
		cat >&2 <<-'MESSAGE'
			The image of Postgres is made with mmdebstrap, which is not on this machine and cannot be installed from here.
			Either install it:      apt-get install mmdebstrap     (as root)
			or name an image:       MUSTER_POSTGRES_IMAGE=postgres:17
		MESSAGE
		return 3
	fi
	apt_refresh
	apt_install mmdebstrap
}

doctor() {
	echo "this machine:"
	local version dir free
	if version=$(go env GOVERSION 2>/dev/null); then
		if [ "$(printf '%s\n' "$go_wanted" "${version#go}" | sort -V | head -n 1)" = "$go_wanted" ]; then
			have go "$version"
		else
			lack go "$version is older than $go_wanted: https://go.dev/dl"
		fi
	else
		lack go "$go_wanted or newer: https://go.dev/dl"
	fi
	if dir=$(postgres_dir); then
		have postgres "$("$dir/postgres" --version)"
	elif [ -n "${MUSTER_DATABASE_URL:-}" ]; then
		have postgres "named by MUSTER_DATABASE_URL"
	else
		lack postgres "apt-get install postgresql (make demo and make test do it as root), or set MUSTER_DATABASE_URL"
	fi
	if compiler_works; then
		have compiler "$(go env CC)"
	else
		lack compiler "apt-get install gcc libc6-dev (make test does it as root); only the tests' race detector needs it"
	fi
	if command -v chromium >/dev/null; then
		have chromium "$(command -v chromium), for the tests of the console"
	else
		lack chromium "apt-get install chromium (make test does it as root); only the tests of the console need it"
	fi
	if command -v git >/dev/null; then have git "$(git --version)"; else lack git "apt-get install git"; fi
	free=$(free_gb "$(go env GOCACHE 2>/dev/null || pwd)")
	if [ "$free" -ge "$disk_wanted_gb" ]; then
		have disk "$free GB free for Go's caches"
	else
		lack disk "$free GB free for Go's caches, $disk_wanted_gb wanted: set GOCACHE and GOMODCACHE to a larger disk"
	fi
	have cores "$(nproc) (a first build of the dev cluster takes about 5 minutes on 2)"
	doctor_containers
	have ports "none fixed: every part of the local stack takes a free one"
	if [ "$missing" -ne 0 ]; then
		echo "something is missing; see above"
		exit 3
	fi
	echo "nothing is missing"
}

# doctor_containers looks for what only the stack in containers needs.
doctor_containers() {
	if ! docker version >/dev/null 2>&1; then
		optional docker "no engine answers; nothing of the main path needs one (make up starts one process then)"
		return
	fi
	have docker "engine $(docker version --format '{{.Server.Version}}'): make up uses containers"
	if docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null; then
		have compose "$({ docker compose version || docker-compose version; } 2>/dev/null | head -n 1)"
	else
		optional compose "neither docker compose nor docker-compose; make up starts one process then"
	fi
	if command -v mmdebstrap >/dev/null; then
		have mmdebstrap "makes the image of Postgres"
	else
		optional mmdebstrap "makes the image of Postgres: apt-get install mmdebstrap (make images does it as root), or set MUSTER_POSTGRES_IMAGE"
	fi
}

case "${1:-}" in
doctor) doctor ;;
install)
	shift
	for need in "$@"; do
		case $need in
		postgres) install_postgres ;;
		compiler) install_compiler ;;
		browser) install_browser ;;
		images) install_images ;;
		*) echo "machine.sh: unknown need \"$need\"" >&2 && exit 2 ;;
		esac
	done
	;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
