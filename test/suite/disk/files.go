package disk

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"
)

// page is what reaches the disk whole or not at all, in bytes.
const page = 4096

// files is all that is on the disk, as it is now and as it was last forced there.
type files struct {
	mu   sync.Mutex
	byID map[uint64]*file
	root *file
	last uint64 // id
	// unforced are the directories that have changed since they were forced.
	unforced map[*file]bool

	strict, fails, full bool
	slow                time.Duration // each force
	room                int64         // bytes that fit while the disk is full
	struck              int           // writes and forces that a fault has hit since it began
}

// file is a file, a directory or a symbolic link.
type file struct {
	id, looked     uint64 // looked: how often the kernel looked it up
	mode, uid, gid uint32
	modified       time.Time
	links, opens   int

	data []byte
	// before has the pages as they were forced last, of those that have changed since;
	// size is how long the file was then.
	before map[int64][]byte
	size   int64

	entries, forced map[string]*file // of a directory: now, and when it was forced
	target          string           // of a link
}

func newFiles() *files {
	fs := &files{byID: map[uint64]*file{}, unforced: map[*file]bool{}}
	fs.root = fs.add(syscall.S_IFDIR|0o777, 0, 0)
	fs.root.links = 1
	return fs
}

func (fs *files) add(mode, uid, gid uint32) *file {
	fs.last++
	f := &file{id: fs.last, mode: mode, uid: uid, gid: gid, modified: time.Now(), before: map[int64][]byte{}}
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		f.entries, f.forced = map[string]*file{}, map[string]*file{}
	}
	fs.byID[f.id] = f
	return f
}

// enter gives a file a name, which is another one's no more.
func (fs *files) enter(directory *file, name string, f *file) {
	if there := directory.entries[name]; there != nil {
		fs.leave(directory, name)
	}
	directory.entries[name] = f
	f.links++
	fs.unforced[directory] = true
	directory.modified = time.Now()
}

func (fs *files) leave(directory *file, name string) {
	f := directory.entries[name]
	delete(directory.entries, name)
	f.links--
	fs.unforced[directory] = true
	directory.modified = time.Now()
	fs.tidy(f)
}

// tidy forgets a file that cannot be reached any more, unless the power goes.
func (fs *files) tidy(f *file) {
	if f.links == 0 && f.opens == 0 && f.looked == 0 {
		delete(fs.byID, f.id)
	}
}

// used is the room that all files take, in bytes.
func (fs *files) used() (bytes int64) {
	for _, f := range fs.byID {
		bytes += int64(len(f.data))
	}
	return bytes
}

// fits reports whether there is room for more bytes.
func (fs *files) fits(bytes int64) bool {
	if !fs.full || bytes <= 0 || fs.used()+bytes <= fs.room {
		return true
	}
	fs.struck++
	return false
}

// keep notes how the pages of a range are before they change.
func (f *file) keep(from, to int64) {
	for p := from / page; p*page < min(to, f.size); p++ {
		if _, kept := f.before[p]; !kept {
			f.before[p] = slices.Clone(f.data[min(p*page, int64(len(f.data))):min((p+1)*page, int64(len(f.data)))])
		}
	}
	for p := max(from/page, (f.size+page-1)/page); p*page < to; p++ {
		if _, kept := f.before[p]; !kept {
			f.before[p] = nil
		}
	}
}

func (f *file) write(at int64, data []byte) {
	end := at + int64(len(data))
	f.keep(min(at, int64(len(f.data))), end)
	if grow := end - int64(len(f.data)); grow > 0 {
		f.data = append(f.data, make([]byte, grow)...)
	}
	copy(f.data[at:], data)
	f.modified = time.Now()
}

func (f *file) truncate(size int64) {
	now := int64(len(f.data))
	f.keep(min(size, now), max(size, now))
	if size <= now {
		clear(f.data[size:])
		f.data = f.data[:size]
	} else {
		f.data = append(f.data, make([]byte, size-now)...)
	}
	f.modified = time.Now()
}

// sync forces a file or a directory to the disk.
func (fs *files) sync(f *file) {
	f.settled()
	if fs.strict {
		if f.entries != nil {
			f.forced = maps.Clone(f.entries)
			delete(fs.unforced, f)
		}
		return
	}
	fs.syncNames()
}

func (f *file) settled() {
	f.size = int64(len(f.data))
	clear(f.before)
}

func (fs *files) syncNames() {
	for directory := range fs.unforced {
		directory.forced = maps.Clone(directory.entries)
	}
	clear(fs.unforced)
}

func (fs *files) syncAll() {
	for _, f := range fs.byID {
		f.settled()
	}
	fs.syncNames()
}

// powerOff leaves of everything what was forced to the disk, and of the rest what
// kept says, asked for each page and each length.
func (fs *files) powerOff(kept func() bool) {
	for directory := range fs.unforced {
		directory.entries = maps.Clone(directory.forced)
	}
	clear(fs.unforced)
	for _, f := range fs.byID {
		f.links = 0
	}
	fs.root.links = 1
	fs.restore(fs.root, kept)
	for _, f := range fs.byID {
		fs.tidy(f)
	}
}

func (fs *files) restore(directory *file, kept func() bool) {
	for _, name := range slices.Sorted(maps.Keys(directory.entries)) {
		f := directory.entries[name]
		f.links++
		fs.byID[f.id] = f
		switch {
		case f.links > 1: // by another name
		case f.entries != nil:
			fs.restore(f, kept)
		default:
			f.lose(kept)
		}
	}
}

// lose brings a file back to what was forced to the disk.
func (f *file) lose(kept func() bool) {
	size := f.size
	if len(f.before) > 0 && kept() {
		size = int64(len(f.data))
	}
	data := make([]byte, max(int64(len(f.data)), (f.size+page-1)/page*page))
	copy(data, f.data)
	for _, p := range slices.Sorted(maps.Keys(f.before)) {
		if !kept() {
			clear(data[min(p*page, int64(len(data))):min((p+1)*page, int64(len(data)))])
			copy(data[min(p*page, int64(len(data))):], f.before[p])
		}
	}
	f.data = data[:size]
	f.settled()
}
