package disk

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (k *kernel) Lookup(_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.byID[header.NodeId].entries[name]
	if f == nil {
		return fuse.ENOENT
	}
	return k.entry(f, out)
}

func (k *kernel) Forget(id, lookups uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.byID[id]; f != nil && f != k.root {
		f.looked -= min(lookups, f.looked)
		k.tidy(f)
	}
}

func (k *kernel) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, status := k.create(&in.InHeader, name, syscall.S_IFDIR|in.Mode&^in.Umask)
	if !status.Ok() {
		return status
	}
	return k.entry(f, out)
}

func (k *kernel) Symlink(_ <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, status := k.create(header, name, syscall.S_IFLNK|0o777)
	if !status.Ok() {
		return status
	}
	f.target = target
	return k.entry(f, out)
}

func (k *kernel) Readlink(_ <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return []byte(k.byID[header.NodeId].target), fuse.OK
}

func (k *kernel) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	directory, f := k.byID[in.NodeId], k.byID[in.Oldnodeid]
	if directory.entries[name] != nil {
		return fuse.Status(syscall.EEXIST)
	}
	k.enter(directory, name, f)
	return k.entry(f, out)
}

func (k *kernel) Unlink(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return k.remove(header, name)
}

func (k *kernel) Rmdir(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return k.remove(header, name)
}

func (k *kernel) remove(header *fuse.InHeader, name string) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	directory := k.byID[header.NodeId]
	f := directory.entries[name]
	if f == nil {
		return fuse.ENOENT
	}
	if len(f.entries) > 0 {
		return fuse.Status(syscall.ENOTEMPTY)
	}
	k.leave(directory, name)
	return fuse.OK
}

func (k *kernel) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, next := k.byID[in.NodeId], k.byID[in.Newdir]
	f, there := old.entries[from], next.entries[to]
	switch {
	case f == nil:
		return fuse.ENOENT
	case in.Flags != 0:
		return fuse.EINVAL
	case there != nil && len(there.entries) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	case there == f:
		return fuse.OK
	}
	k.enter(next, to, f)
	k.leave(old, from)
	return fuse.OK
}
