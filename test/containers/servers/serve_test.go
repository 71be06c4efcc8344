package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/testkit/tally"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments []string
		command   []string
		refusal   string
	}{
		"as in the example": {[]string{"-nats-server", "bin/nats-server", "--", "go", "test", "-v"}, []string{"go", "test", "-v"}, ""},
		"no command":        {[]string{"-nats-server", "bin/nats-server"}, nil, "no command"},
		"no nats-server":    {[]string{"--", "go", "test"}, nil, "-nats-server names no program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(test.arguments)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Errorf("the error is %v, want %q", err, test.refusal)
				}
				return
			}
			if err != nil || !slices.Equal(o.command, test.command) || !filepath.IsAbs(o.natsServer) {
				t.Errorf("read as %+v, %v", o, err)
			}
		})
	}
}

func TestTheCommandsCodeIsPassedOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command []string
		code    int
		fails   bool
	}{
		"good":            {[]string{"true"}, 0, false},
		"failed":          {[]string{"sh", "-c", "exit 3"}, 3, false},
		"killed":          {[]string{"sh", "-c", "kill -9 $$"}, 1, true},
		"not there":       {[]string{"/none/such"}, 1, true},
		"its environment": {[]string{"sh", "-c", `test "$A" = b`}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, err := run(test.command, []string{"A=b", "PATH=" + os.Getenv("PATH")})
			if code != test.code || (err != nil) != test.fails {
				t.Errorf("ended with %d, %v; want %d", code, err, test.code)
			}
		})
	}
}

func TestDirectoriesOfTests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files, gos string
		want       []string
	}{
		"one":         {"/tmp", "", []string{"/tmp"}},
		"both are it": {"/tmp", "/tmp", []string{"/tmp"}},
		"two":         {"/dev/shm/tests", "/tmp", []string{"/dev/shm/tests", "/tmp"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := temporary(test.files, test.gos); !slices.Equal(got, test.want) {
				t.Errorf("the container sees %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheSummaryNamesEachPackage(t *testing.T) {
	t.Parallel()
	got := summary("/repo", []tally.Note{
		{Kind: tally.Postgres, Place: tally.Shared, Dir: "/repo/test/e2e"},
		{Kind: tally.Postgres, Place: tally.Shared, Dir: "/repo/services/queue-manager/app"},
		{Kind: tally.Postgres, Place: tally.Shared, Dir: "/repo/test/e2e"},
		{Kind: tally.NATS, Place: tally.Own, Dir: "/repo/pkg/bus"},
	})
	want := []string{
		"Postgres, databases on the server for all tests: 3 for the tests of services/queue-manager/app (1), test/e2e (2)",
		"Postgres, servers of their own on this machine: 0 for the tests of no package",
		"NATS, servers in the container: 0 for the tests of no package",
		"NATS, servers on this machine, whose files the container does not see: 1 for the tests of pkg/bus (1)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
