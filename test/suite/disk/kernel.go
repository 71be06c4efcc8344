package disk

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// kernel answers the kernel. It keeps nothing of what it is answered beyond an open
// file, so that it never sees what the power took.
type kernel struct {
	fuse.RawFileSystem
	*files
	open    map[uint64][]fuse.DirEntry // directories that are read
	handles uint64
}

// force is what fsync does: it takes its time, and may fail.
func (k *kernel) force(f *file) fuse.Status {
	k.mu.Lock()
	slow := k.slow
	k.mu.Unlock()
	time.Sleep(slow) // the delay is the fault
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails || slow > 0 {
		k.struck++
	}
	if k.fails { // what was to be forced is gone, and the next force knows nothing of it
		f.lose(func() bool { return false })
		return fuse.EIO
	}
	k.sync(f)
	return fuse.OK
}

func (k *kernel) attributes(f *file, out *fuse.Attr) {
	*out = fuse.Attr{
		Ino: f.id, Size: uint64(len(f.data)), Blocks: uint64(len(f.data)+511) / 512, Blksize: page,
		Mode: f.mode, Nlink: uint32(max(f.links, 0)), Owner: fuse.Owner{Uid: f.uid, Gid: f.gid},
	}
	out.SetTimes(&f.modified, &f.modified, &f.modified)
}

// entry hands a file to the kernel.
func (k *kernel) entry(f *file, out *fuse.EntryOut) fuse.Status {
	f.looked++
	k.byID[f.id] = f
	out.NodeId = f.id
	k.attributes(f, &out.Attr)
	return fuse.OK
}

// create makes a file; the caller holds the lock.
func (k *kernel) create(header *fuse.InHeader, name string, mode uint32) (*file, fuse.Status) {
	directory := k.byID[header.NodeId]
	switch {
	case directory.entries[name] != nil:
		return nil, fuse.Status(syscall.EEXIST)
	case !k.fits(page): // for the name
		return nil, fuse.Status(syscall.ENOSPC)
	case k.fails:
		k.struck++
		return nil, fuse.EIO
	}
	f := k.add(mode, header.Uid, header.Gid)
	k.enter(directory, name, f)
	return f, fuse.OK
}

func (k *kernel) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attributes(k.byID[in.NodeId], &out.Attr)
	return fuse.OK
}

func (k *kernel) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.byID[in.NodeId]
	if size, ok := in.GetSize(); ok {
		if !k.fits(int64(size) - int64(len(f.data))) {
			return fuse.Status(syscall.ENOSPC)
		}
		f.truncate(int64(size))
	}
	if mode, ok := in.GetMode(); ok {
		f.mode = f.mode&syscall.S_IFMT | mode&^syscall.S_IFMT
	}
	if uid, ok := in.GetUID(); ok {
		f.uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		f.gid = gid
	}
	if modified, ok := in.GetMTime(); ok {
		f.modified = modified
	}
	k.attributes(f, &out.Attr)
	return fuse.OK
}

func (k *kernel) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	const all = 64 << 30 // as much as anything asks for
	free := uint64(all)
	if k.full {
		free = uint64(max(k.room-k.used(), 0))
	}
	*out = fuse.StatfsOut{Bsize: page, Frsize: page, NameLen: 255, Blocks: all / page, Bfree: free / page, Bavail: free / page, Files: 1 << 20, Ffree: 1 << 20}
	return fuse.OK
}

func (k *kernel) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	directory := k.byID[in.NodeId]
	var entries []fuse.DirEntry
	for _, name := range slices.Sorted(maps.Keys(directory.entries)) {
		f := directory.entries[name]
		entries = append(entries, fuse.DirEntry{Name: name, Ino: f.id, Mode: f.mode})
	}
	k.handles++
	k.open[k.handles], out.Fh = entries, k.handles
	return fuse.OK
}

func (k *kernel) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	entries := k.open[in.Fh]
	for i := in.Offset; i < uint64(len(entries)); i++ {
		entry := entries[i]
		entry.Off = i + 1
		if !out.AddDirEntry(entry) {
			break
		}
	}
	return fuse.OK
}

func (k *kernel) ReleaseDir(in *fuse.ReleaseIn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open, in.Fh)
}
