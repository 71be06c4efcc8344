// Command images makes the container images of the local stack without a registry and
// without an engine: each is a few files in one layer from scratch, written as an archive
// for docker load. The same files give the same image, bit by bit, on any machine and at
// any time.
//
// It is not for compiling: make images builds the binaries first.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run() error {
	var s Sources
	flag.StringVar(&s.Binaries, "bin", "bin", "`directory` of the static binaries")
	flag.StringVar(&s.Wget, "wget", "bin/images/wget", "the health check `program` of nats-server")
	flag.StringVar(&s.PostgresRoot, "postgres-root", "", "tar `file` with a root file system that has Postgres; empty for no image of Postgres")
	flag.StringVar(&s.PostgresEntrypoint, "postgres-entrypoint", "", "the entrypoint `script` of the image of Postgres")
	flag.StringVar(&s.Zoneinfo, "zoneinfo", "", "Go's zoneinfo.zip `file`")
	flag.StringVar(&s.Version, "version", "dev", "version for the labels")
	flag.StringVar(&s.Revision, "revision", "", "commit for the labels")
	here := flag.Bool("loaded", false, "an engine of this machine loads the archives: do not compress them")
	out := flag.String("out", "bin/images", "`directory` for the archives")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	var err error
	if s.Created, err = created(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	level := carried
	if *here {
		level = loaded
	}
	var faults []error
	for _, spec := range Catalogue(s) {
		faults = append(faults, write(spec, level, filepath.Join(*out, spec.File())))
	}
	return errors.Join(faults...)
}

// created reads the convention of reproducible builds: seconds since 1970.
func created(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970: %w", epoch, err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
