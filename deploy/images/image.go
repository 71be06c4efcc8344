package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Spec describes an image.
type Spec struct {
	Name, Tag string
	Created   time.Time
	// Root is a tar file with a root file system to start from; empty for none.
	Root    string
	Entries []entry
	Config  v1.Config
}

// File returns the name of the image's archive.
func (s Spec) File() string { return s.Name + ".tar" }

// Reference returns the image's name for engines.
func (s Spec) Reference() string { return s.Name + ":" + s.Tag }

// Levels of compression. An image has the same id with each.
const (
	carried = gzip.BestSpeed     // of an archive that is carried to an engine
	loaded  = gzip.NoCompression // of one that the engine here unpacks at once
)

// Build makes the image, its layers compressed at a level.
func (s Spec) Build(level int) (v1.Image, error) {
	compression := tarball.WithCompressionLevel(level)
	var layers []v1.Layer
	if s.Root != "" {
		root, err := tarball.LayerFromFile(s.Root, compression)
		if err != nil {
			return nil, fmt.Errorf("image %s: root file system: %w", s.Reference(), err)
		}
		layers = append(layers, root)
	}
	var packed bytes.Buffer
	if err := pack(&packed, s.Entries); err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Reference(), err)
	}
	own, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }, compression)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Reference(), err)
	}
	image, err := mutate.AppendLayers(empty.Image, append(layers, own)...)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Reference(), err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Reference(), err)
	}
	file = file.DeepCopy()
	file.Config, file.OS, file.Architecture = s.Config, "linux", architecture()
	file.Created = v1.Time{Time: s.Created}
	for i := range file.History {
		file.History[i] = v1.History{Created: file.Created, CreatedBy: "make images"}
	}
	return mutate.ConfigFile(image, file)
}

// write creates the image's archive and prints its name and id.
func write(s Spec, level int, file string) error {
	image, err := s.Build(level)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(s.Reference())
	if err != nil {
		return err
	}
	// A half-written archive must not look complete.
	if err := tarball.WriteToFile(file+".part", tag, image); err != nil {
		return fmt.Errorf("image %s: %w", s.Reference(), err)
	}
	if err := os.Rename(file+".part", file); err != nil {
		return err
	}
	id, err := image.ConfigName()
	if err != nil {
		return err
	}
	fmt.Printf("%s %s %s\n", s.Reference(), id, file)
	return nil
}
