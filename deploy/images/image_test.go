package main

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// sources returns files as a build on some machine would have left them.
func sources(t *testing.T, modified time.Time, mode os.FileMode) Sources {
	t.Helper()
	dir := t.TempDir()
	put := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, modified, modified); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, binary := range []string{"muster", "intake", "queue-manager", "capacity-watcher", "dispatcher", "console", "nats-server", "devcluster", "muster-dev"} {
		put(binary, "program "+binary)
	}
	return Sources{
		Binaries: dir, Wget: put("wget", "program wget"), PostgresEntrypoint: put("entrypoint.sh", "#!/bin/bash\n"), PostgresRoot: put("root.tar", rootTar(t)),
		Zoneinfo: put("zoneinfo.zip", "zones"), Version: "v1", Revision: "abc", Created: time.Unix(1_700_000_000, 0).UTC(),
	}
}

func rootTar(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	if err := pack(&text, []entry{{path: "bin/bash", mode: 0o755, text: []byte("shell")}}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestSameFilesGiveTheSameImage(t *testing.T) {
	t.Parallel()
	once := Catalogue(sources(t, time.Now(), 0o755))
	again := Catalogue(sources(t, time.Unix(1, 0), 0o700))
	for i := range once {
		first, second := digest(t, once[i]), digest(t, again[i])
		if first != second {
			t.Errorf("image %s: built twice, it is %s and %s", once[i].Name, first, second)
		}
	}
}

func digest(t *testing.T, spec Spec) string {
	t.Helper()
	image, err := spec.Build(carried)
	if err != nil {
		t.Fatal(err)
	}
	d, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// The engine knows an image by its id, and need not load one again that came compressed.
func TestCompressionDoesNotChangeTheID(t *testing.T) {
	t.Parallel()
	for _, spec := range Catalogue(sources(t, time.Now(), 0o755)) {
		var ids []v1.Hash
		for _, level := range []int{carried, loaded} {
			image, err := spec.Build(level)
			if err != nil {
				t.Fatal(err)
			}
			id, err := image.ConfigName()
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if ids[0] != ids[1] {
			t.Errorf("image %s is %s compressed and %s otherwise", spec.Name, ids[0], ids[1])
		}
	}
}

func TestAnotherFileGivesAnotherImage(t *testing.T) {
	t.Parallel()
	s := sources(t, time.Now(), 0o755)
	before := digest(t, muster(s))
	if err := os.WriteFile(filepath.Join(s.Binaries, "intake"), []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if after := digest(t, muster(s)); after == before {
		t.Errorf("the image is %s with another intake too", after)
	}
}

func TestServicesRunWithoutRights(t *testing.T) {
	t.Parallel()
	s := sources(t, time.Now(), 0o755)
	for _, spec := range []Spec{muster(s), nats(s), devcluster(s)} {
		t.Run(spec.Name, func(t *testing.T) {
			if spec.Config.User != "65532:65532" {
				t.Errorf("image %s runs as %q", spec.Name, spec.Config.User)
			}
			for _, name := range []string{"title", "version", "revision", "created", "licenses"} {
				if spec.Config.Labels["org.opencontainers.image."+name] == "" {
					t.Errorf("image %s has no label %s", spec.Name, name)
				}
			}
			image, err := spec.Build(carried)
			if err != nil {
				t.Fatal(err)
			}
			names := paths(t, image)
			for _, wanted := range []string{"etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo.zip", "tmp"} {
				if !slices.Contains(names, wanted) {
					t.Errorf("image %s has no %s, only %v", spec.Name, wanted, names)
				}
			}
			if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "/sh") }) {
				t.Errorf("image %s has a shell", spec.Name)
			}
		})
	}
}

// docker-compose.yaml asks nats-server by a program that is in its image.
func TestTheHealthCheckOfNATSIsInItsImage(t *testing.T) {
	t.Parallel()
	image, err := nats(sources(t, time.Now(), 0o755)).Build(carried)
	if err != nil {
		t.Fatal(err)
	}
	if names := paths(t, image); !slices.Contains(names, "bin/wget") {
		t.Errorf("the image has no bin/wget, only %v", names)
	}
	if !strings.Contains(read(t, "../../docker-compose.yaml"), "test: [CMD, wget, -q, --spider, ") {
		t.Error("docker-compose.yaml has no health check that calls wget")
	}
}

func paths(t *testing.T, image v1.Image) []string {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	var names []string
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func TestCertificateAuthoritiesCanBeRead(t *testing.T) {
	t.Parallel()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(caRoots()) {
		t.Fatal("no certificate can be read")
	}
	if count := strings.Count(string(caRoots()), "BEGIN CERTIFICATE"); count < 100 {
		t.Errorf("there are %d authorities", count)
	}
}

// The names are written in docker-compose.yaml too, and NATS is of the version
// that the embedded one has.
func TestNamesAgreeWithTheirUsers(t *testing.T) {
	t.Parallel()
	compose := read(t, "../../docker-compose.yaml")
	for _, spec := range Catalogue(sources(t, time.Now(), 0o755)) {
		if !strings.Contains(compose, ":-"+spec.Reference()+"}") {
			t.Errorf("docker-compose.yaml does not use the image %s", spec.Reference())
		}
	}
	pinned := regexp.MustCompile(`nats-server/v2 v(\S+)`).FindStringSubmatch(read(t, "../../pkg/go.mod"))
	if pinned == nil || pinned[1] != natsTag {
		t.Errorf("the image's tag is %s, but module pkg pins %v", natsTag, pinned)
	}
	if root := read(t, "postgres/root.sh"); !strings.Contains(root, "\nversion="+postgresTag+"\n") {
		t.Errorf("the image's tag is %s, but postgres/root.sh installs another", postgresTag)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
