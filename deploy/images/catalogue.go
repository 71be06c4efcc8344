package main

import (
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Sources are the inputs of the images.
type Sources struct {
	Binaries           string
	Wget               string // the health check of nats-server
	PostgresRoot       string
	PostgresEntrypoint string
	Zoneinfo           string
	Version, Revision  string
	Created            time.Time
}

// Tags of images with third-party content; docker-compose.yaml must name the same. Muster's
// tag is "local".
const (
	localTag    = "local"
	natsTag     = "2.15.2"
	postgresTag = "15"
)

// nonroot is the user and group of programs without rights, postgresUser that of the
// official image of Postgres.
const (
	nonroot      = 65532
	postgresUser = 999
)

// architecture is that of the binaries, which are built on the machine that runs them.
func architecture() string { return runtime.GOARCH }

// Catalogue lists the images.
func Catalogue(s Sources) []Spec {
	specs := []Spec{muster(s), nats(s), devcluster(s)}
	if s.PostgresRoot != "" {
		specs = append(specs, postgres(s))
	}
	return specs
}

// muster has all services and the client; the container's command selects one.
func muster(s Sources) Spec {
	spec := static(s, "muster", localTag, "Muster: intake, queue-manager, capacity-watcher, dispatcher, the console and the client")
	for _, binary := range []string{"muster", "intake", "queue-manager", "capacity-watcher", "dispatcher", "console"} {
		spec.Entries = append(spec.Entries, entry{path: "bin/" + binary, mode: 0o755, from: filepath.Join(s.Binaries, binary)})
	}
	spec.Entries = append(spec.Entries, credentialsDirs()...)
	spec.Config.Cmd = []string{"muster", "--help"}
	return spec
}

// nats is started like the official image.
func nats(s Sources) Spec {
	spec := static(foreign(s, natsTag), "muster-nats", natsTag, "nats-server")
	spec.Entries = append(spec.Entries,
		entry{path: "nats-server", mode: 0o755, from: filepath.Join(s.Binaries, "nats-server")},
		entry{path: "bin/wget", mode: 0o755, from: s.Wget},
		entry{path: "data", dir: true, mode: 0o700, owner: nonroot})
	spec.Config.Entrypoint, spec.Config.Cmd = []string{"/nats-server"}, []string{"--jetstream", "--store_dir", "/data"}
	spec.Config.ExposedPorts = map[string]struct{}{"4222/tcp": {}, "6222/tcp": {}, "8222/tcp": {}}
	return spec
}

func devcluster(s Sources) Spec {
	spec := static(s, "muster-devcluster", localTag, "Kubernetes with KWOK nodes and the KubeRay operator, for development")
	for _, binary := range []string{"devcluster", "muster-dev"} {
		spec.Entries = append(spec.Entries, entry{path: "bin/" + binary, mode: 0o755, from: filepath.Join(s.Binaries, binary)})
	}
	spec.Entries = append(spec.Entries, credentialsDirs()...)
	spec.Config.Entrypoint, spec.Config.Cmd = []string{"devcluster"}, []string{"up"}
	spec.Config.ExposedPorts = map[string]struct{}{"6443/tcp": {}}
	return spec
}

// static is an image for static binaries that run without rights.
func static(s Sources, name, tag, title string) Spec {
	return Spec{
		Name: name, Tag: tag, Created: s.Created,
		Entries: []entry{
			{path: "etc/passwd", mode: 0o644, text: []byte("root:x:0:0::/:/none\nnonroot:x:65532:65532::/tmp:/none\n")},
			{path: "etc/group", mode: 0o644, text: []byte("root:x:0:\nnonroot:x:65532:\n")},
			{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: caRoots()},
			{path: "usr/share/zoneinfo.zip", mode: 0o644, from: s.Zoneinfo},
			{path: "tmp", dir: true, mode: 0o1777},
		},
		Config: v1.Config{
			User: "65532:65532", WorkingDir: "/",
			Env:    []string{"PATH=/bin", "HOME=/tmp", "ZONEINFO=/usr/share/zoneinfo.zip"},
			Labels: labels(s, title),
		},
	}
}

// credentialsDirs are the mount points of volumes with kubeconfigs: an empty volume gets
// the owner of the directory that it covers.
func credentialsDirs() []entry {
	var dirs []entry
	for _, dir := range []string{"admin", "capacity-watcher", "dispatcher", "intake"} {
		dirs = append(dirs, entry{path: "credentials/" + dir, dir: true, mode: 0o700, owner: nonroot})
	}
	return dirs
}

// postgres takes the variables of the official image.
func postgres(s Sources) Spec {
	s = foreign(s, postgresTag)
	return Spec{
		Name: "muster-postgres", Tag: postgresTag, Created: s.Created, Root: s.PostgresRoot,
		Entries: []entry{
			{path: "usr/local/bin/docker-entrypoint.sh", mode: 0o755, from: s.PostgresEntrypoint},
			{path: "docker-entrypoint-initdb.d", dir: true, mode: 0o755},
			{path: "var/lib/postgresql/data", dir: true, mode: 0o700, owner: postgresUser},
			{path: "run/postgresql", dir: true, mode: 0o3777, owner: postgresUser},
		},
		Config: v1.Config{
			Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"postgres"}, StopSignal: "SIGINT",
			Env: []string{
				"PATH=/usr/lib/postgresql/" + postgresTag + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				"LANG=C.UTF-8", "PGDATA=/var/lib/postgresql/data",
			},
			ExposedPorts: map[string]struct{}{"5432/tcp": {}},
			Volumes:      map[string]struct{}{"/var/lib/postgresql/data": {}},
			Labels:       labels(s, "Postgres "+postgresTag+" from Debian's packages"),
		},
	}
}

// foreign labels an image with third-party content: it has the version of its content,
// and stays the same from commit to commit.
func foreign(s Sources, version string) Sources {
	s.Version, s.Revision, s.Created = version, version, time.Unix(0, 0).UTC()
	return s
}

func labels(s Sources, title string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  s.Version,
		"org.opencontainers.image.revision": s.Revision,
		"org.opencontainers.image.created":  s.Created.Format(time.RFC3339),
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.vendor":   "Muster",
	}
}
