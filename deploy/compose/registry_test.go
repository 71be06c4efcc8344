package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAddingAddsAndRemovingRemoves: a run drops no cluster and no tenant of an earlier one,
// and prints each change.
func TestAddingAddsAndRemovingRemoves(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "secrets")
	for _, step := range []struct {
		arguments, prints, refused string
		have, lack                 []string // in accounts.conf
	}{
		{"", "added cluster local\n", "", []string{"capacity-watcher-local"}, []string{"tenant-"}},
		{"-cluster east -tenant a=one", "added cluster east\nadded tenant a=one\n", "", []string{"capacity-watcher-local", "dispatcher-east", "tenant-a"}, nil},
		{"-tenant b=two", "added tenant b=two\n", "", []string{"capacity-watcher-local", "dispatcher-east", "tenant-a", "tenant-b"}, nil},
		{"-cluster east -tenant b=two", "", "", []string{"dispatcher-local", "tenant-a", "tenant-b"}, nil},
		{"-named-tenant b=three", "changed tenant b=two to named-tenant b=three\n", "", []string{"muster.submit.three.tenant-b"}, []string{"muster.submit.two"}},
		{"-remove tenant=a -remove cluster=local", "removed tenant a and its keys\nremoved cluster local and its keys\n", "", []string{"dispatcher-east", "tenant-b"}, []string{"tenant-a", "-local"}},
		{"", "", "", []string{"dispatcher-east", "tenant-b"}, []string{"tenant-a", "-local"}},
		{"-intake east=research,lab", "added intake east=research,lab\n", "", []string{"intake-east", "muster.home.east.research", "muster.home.east.lab"}, nil},
		{"-remove intake=east -intake east=lab", "removed intake east and its keys\nadded intake east=lab\n", "", []string{"muster.home.east.lab"}, []string{"muster.home.east.research"}},
		{"-remove tenant=a", "", `remove tenant "a": there is no user tenant-a`, nil, nil},
		{"-remove cluster=west", "", `remove cluster "west": it is none of east`, nil, nil},
		{"-remove b", "", `remove "b": want cluster=NAME, tenant=NAME, checker=NAME or intake=NAME`, nil, nil},
		{"-remove cluster=east -cluster west", "removed cluster east and its keys\nadded cluster west\n", "", []string{"tenant-b", "dispatcher-west"}, []string{"dispatcher-east", "intake-east"}},
	} {
		w, err := parse(append(strings.Fields(step.arguments), dir))
		if err != nil {
			t.Fatal(err)
		}
		var printed strings.Builder
		err = w.make(&printed)
		if step.refused != "" {
			if err == nil || err.Error() != step.refused {
				t.Errorf("%q: error %v, want %q", step.arguments, err, step.refused)
			}
			continue
		}
		if err != nil || printed.String() != step.prints {
			t.Errorf("%q prints %q, %v; want %q", step.arguments, printed.String(), err, step.prints)
		}
		accounts, err := os.ReadFile(filepath.Join(dir, "accounts.conf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range step.have {
			if !strings.Contains(string(accounts), name) {
				t.Errorf("%q: the accounts lack %s", step.arguments, name)
			}
		}
		for _, name := range step.lack {
			if strings.Contains(string(accounts), name) {
				t.Errorf("%q: the accounts have %s", step.arguments, name)
			}
		}
	}
	for name, want := range map[string]bool{"tenant-a.nk": false, "tenant-a.token": false, "dispatcher-local.nk": false, "intake-east.nk": false, "tenant-b.nk": true} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("the file is there: %t, want %t", err == nil, want)
			}
		})
	}
}
