#!/usr/bin/env bash
# Makes the images of docker-compose.yaml from the binaries in bin/ and loads
# them into the Docker engine: without a registry and without BuildKit. Without
# an engine it leaves the archives in bin/images.
#
#   build.sh [VERSION]
set -euo pipefail
cd "$(dirname "$0")/../.."

version=${1:-dev}
out=bin/images
root=$out/postgres-root.tar
began=$SECONDS
mkdir -p "$out"

# Time stamps of files do not go into the images; that of the commit does, so
# that a commit has one image. SOURCE_DATE_EPOCH is the usual name for it.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

postgres=()
if [ -n "${MUSTER_POSTGRES_IMAGE:-}" ]; then
	echo "images: Postgres is $MUSTER_POSTGRES_IMAGE, none is made"
else
	if [ ! -e "$root" ] || [ deploy/images/postgres/root.sh -nt "$root" ]; then
		deploy/local/machine.sh install images
		deploy/images/postgres/root.sh "$root"
	fi
	# Packing hundreds of megabytes takes a while, and nothing in them is ours.
	if ! docker image inspect muster-postgres:15 >/dev/null 2>&1 ||
		[ -n "$(find "$root" deploy/images -newer "$out/muster-postgres.tar" -type f 2>&1)" ]; then
		postgres=(-postgres-root="$root" -postgres-entrypoint=deploy/images/postgres/entrypoint.sh)
	fi
fi

here=() # of an engine that loads the archives
if docker version >/dev/null 2>&1; then here=(-loaded); fi

CGO_ENABLED=0 go build -C deploy/images -trimpath -buildvcs=false -o "$PWD/$out/images" .
CGO_ENABLED=0 go build -C deploy/images -trimpath -buildvcs=false -ldflags="-s -w" -o "$PWD/$out/wget" ./wget
"$out/images" -bin=bin -wget="$out/wget" -out="$out" -version="$version" -revision="$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
	-zoneinfo="$(go env GOROOT)/lib/time/zoneinfo.zip" "${here[@]}" "${postgres[@]}" | while read -r reference id archive; do
	if [ "$(docker image inspect --format '{{.Id}}' "$reference" 2>/dev/null || true)" = "$id" ]; then
		echo "images: $reference is there already ($id)"
	elif [ ${#here[@]} -gt 0 ]; then
		docker load --quiet --input "$archive" >/dev/null
		echo "images: $reference loaded ($id)"
	else
		echo "images: $reference is in $archive; no Docker engine answers ($id)"
	fi
done
echo "images: done in $((SECONDS - began)) s"
