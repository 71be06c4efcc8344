package disk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Serve is the disk, in the process that Start starts, which ends here; in any other
// it returns at once.
func Serve() {
	path := os.Getenv(mountedAt)
	if path == "" {
		return
	}
	if err := serve(path, os.Stdin, os.Stdout); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve mounts the disk and obeys until there is no process to command it.
func serve(path string, commands io.Reader, answers io.Writer) error {
	fs := newFiles()
	server, err := fuse.NewServer(&kernel{RawFileSystem: fuse.NewDefaultRawFileSystem(), files: fs, open: map[uint64][]fuse.DirEntry{}}, path,
		&fuse.MountOptions{
			FsName: "muster-test-disk", Name: "muster", DirectMount: true, AllowOther: os.Geteuid() == 0,
			DisableXAttrs: true, DisableReadDirPlus: true, IgnoreSecurityLabels: true, MaxWrite: 1 << 20,
		})
	if err != nil {
		return err
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return err
	}
	fmt.Fprintln(answers, done)
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		if err := fs.obey(lines.Text()); err != nil {
			fmt.Fprintln(answers, err)
		} else {
			fmt.Fprintln(answers, done)
		}
	}
	if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil { // files may be open
		return server.Unmount() // with a helper, when this is not root
	}
	return nil
}

// obey does what a line says.
func (fs *files) obey(line string) error {
	what, how, _ := strings.Cut(line, " ")
	fs.mu.Lock()
	defer fs.mu.Unlock()
	switch what {
	case "struck":
		if fs.struck == 0 {
			return errors.New("the fault has hit no write")
		}
		fs.struck = 0
	case "sync":
		fs.syncAll()
	case "off":
		fs.powerOff(func() bool { return false })
	case "torn":
		var seed uint64
		if _, err := fmt.Sscan(how, &seed); err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(seed, 0))
		fs.powerOff(func() bool { return random.IntN(2) == 0 })
	case "strict":
		fs.strict = how == "true"
	case "fail":
		fs.fails = how == "true"
	case "full":
		fs.full = how == "true"
		fs.room = fs.used()
	case "slow":
		by, err := time.ParseDuration(how)
		fs.slow = by
		return err
	default:
		return fmt.Errorf("unknown command %q", line)
	}
	return nil
}
