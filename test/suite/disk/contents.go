package disk

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (k *kernel) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, status := k.create(&in.InHeader, name, syscall.S_IFREG|in.Mode&^in.Umask)
	if !status.Ok() {
		return status
	}
	f.opens++
	return k.entry(f, &out.EntryOut)
}

func (k *kernel) Open(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[in.NodeId].opens++
	return fuse.OK
}

func (k *kernel) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.byID[in.NodeId]; f != nil {
		f.opens--
		k.tidy(f)
	}
}

func (k *kernel) Read(_ <-chan struct{}, in *fuse.ReadIn, buffer []byte) (fuse.ReadResult, fuse.Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.byID[in.NodeId].data
	from := min(in.Offset, uint64(len(data)))
	return fuse.ReadResultData(buffer[:copy(buffer, data[from:])]), fuse.OK
}

func (k *kernel) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	f, status := k.write(in, data)
	if !status.Ok() {
		return 0, status
	}
	// Who opened the file so waits for the disk with each write.
	if in.Flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0 {
		if status := k.force(f); !status.Ok() {
			return 0, status
		}
	}
	return uint32(len(data)), fuse.OK
}

func (k *kernel) write(in *fuse.WriteIn, data []byte) (*file, fuse.Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.byID[in.NodeId]
	if k.fails {
		k.struck++
		return nil, fuse.EIO
	}
	if !k.fits(int64(in.Offset) + int64(len(data)) - int64(len(f.data))) {
		return nil, fuse.Status(syscall.ENOSPC)
	}
	f.write(int64(in.Offset), data)
	return f, fuse.OK
}

func (k *kernel) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (k *kernel) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status { return k.forceID(in.NodeId) }

func (k *kernel) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return k.forceID(in.NodeId)
}

func (k *kernel) forceID(id uint64) fuse.Status {
	k.mu.Lock()
	f := k.byID[id]
	k.mu.Unlock()
	return k.force(f)
}
