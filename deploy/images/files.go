package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// entry is a file or a directory of an image.
type entry struct {
	path  string // without a leading slash
	dir   bool
	mode  int64
	owner int // user and group
	// A file's content is one of these.
	from string // a file of this machine
	text []byte
}

// pack writes the entries and their parent directories as a tar archive that depends on
// their content alone: no times, no names of users, one order.
func pack(w io.Writer, entries []entry) error {
	entries = withParents(entries)
	archive := tar.NewWriter(w)
	for _, e := range entries {
		if err := packOne(archive, e); err != nil {
			return fmt.Errorf("pack %q: %w", e.path, err)
		}
	}
	return archive.Close()
}

func withParents(entries []entry) []entry {
	known := map[string]entry{}
	for _, e := range entries {
		for dir := path.Dir(e.path); dir != "."; dir = path.Dir(dir) {
			if _, there := known[dir]; !there {
				known[dir] = entry{path: dir, dir: true, mode: 0o755}
			}
		}
		known[e.path] = e
	}
	all := make([]entry, 0, len(known))
	for _, e := range known {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return all
}

func packOne(archive *tar.Writer, e entry) error {
	header := &tar.Header{
		Name: e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		Typeflag: tar.TypeReg,
	}
	if e.dir {
		header.Typeflag, header.Name = tar.TypeDir, e.path+"/"
		return archive.WriteHeader(header)
	}
	var content io.Reader = bytes.NewReader(e.text)
	header.Size = int64(len(e.text))
	if e.from != "" {
		file, err := os.Open(e.from)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		content, header.Size = file, info.Size()
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}
