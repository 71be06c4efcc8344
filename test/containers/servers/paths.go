package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// path is a directory or file, and what identifies it on this machine and in a container
// that has it mounted.
type path struct {
	Name   string `json:"name"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// identify returns the path, or the nearest one above that exists.
func identify(name string) (path, error) {
	for {
		found, err := os.Stat(name)
		if err == nil {
			is := found.Sys().(*syscall.Stat_t) // so on Linux
			return path{Name: name, Device: uint64(is.Dev), Inode: is.Ino}, nil
		}
		if !os.IsNotExist(err) || name == "/" {
			return path{}, fmt.Errorf("identify %s: %w", name, err)
		}
		name = filepath.Dir(name)
	}
}

// same reports whether the same is found under the name here.
func (p path) same() bool {
	here, err := identify(p.Name)
	return err == nil && here == p
}

// paths identifies all arguments that are absolute paths.
func paths(arguments []string) ([]path, error) {
	var all []path
	for _, argument := range arguments {
		if !filepath.IsAbs(argument) {
			continue
		}
		p, err := identify(argument)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
