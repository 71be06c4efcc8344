package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestQuestionsOfACallerAreBounded: questions that outlive their page count for their caller, who
// then gets no other answer, and no one else is kept from theirs.
func TestQuestionsOfACallerAreBounded(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	a.lateUsage, a.arrived = make(chan struct{}), make(chan struct{})
	b := newBrowser(t, a, "alice", true)
	other := b.another("olga")
	begun := 0
	for begun < 200 && !b.leaves(fmt.Sprintf("/usage?queue=q%d", begun), a.arrived) {
		begun++
	}
	if begun != mostUnderWay {
		t.Errorf("%d questions are under way, want %d", begun, mostUnderWay)
	}
	if status, _, content := other.get("/queues"); status != http.StatusOK {
		t.Errorf("another caller: status %d: %s", status, content)
	}
	close(a.lateUsage)
	status := 0
	for deadline := time.Now().Add(askMost); status != http.StatusOK && time.Now().Before(deadline); {
		status, _, _ = b.get("/queues")
	}
	if status != http.StatusOK {
		t.Errorf("after the answers: status %d", status)
	}
}

// leaves opens a page and leaves it when its question has arrived. It reports whether the console
// asked nothing, because too much is under way.
func (b *browser) leaves(path string, arrived chan struct{}) (refused bool) {
	b.t.Helper()
	for {
		ctx, leave := context.WithCancel(b.t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		answered := make(chan string, 1)
		go func() {
			content := ""
			if response, err := b.client.Do(request); err == nil {
				defer response.Body.Close()
				text, _ := io.ReadAll(response.Body)
				content = string(text)
			}
			answered <- content
		}()
		select {
		case <-arrived:
			leave()
			<-answered
			return false
		case content := <-answered:
			leave()
			if strings.Contains(content, "Too much is being asked for you") {
				return true
			}
			if !strings.Contains(content, "pages loading") { // those that were left may not have ended yet
				b.t.Fatalf("%s: %s", path, content)
			}
		}
	}
}

// at is a clock that stands still.
type at struct{ seconds atomic.Int64 }

func (c *at) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

// TestAnswersOfACallerAreBounded: the answers of one caller leave room for those of others.
func TestAnswersOfACallerAreBounded(t *testing.T) {
	t.Parallel()
	clock := &at{}
	a := newAnswers(clock.now)
	asks := func(caller, what string) {
		t.Helper()
		if _, err := ask(t.Context(), a, question{caller, "token", what}, time.Hour, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * mostKeptOfOne {
		asks("alice", fmt.Sprint(i))
	}
	asks("bob", "mine")
	if len(a.kept) != mostKeptOfOne+1 || a.of["alice"] != mostKeptOfOne || a.kept[question{"bob", "token", "mine"}] == nil {
		t.Errorf("%d answers are kept, of callers %v", len(a.kept), a.of)
	}
	clock.seconds.Add(7200)
	asks("alice", "0")
	if len(a.kept) != 1 || len(a.of) != 1 || a.of["alice"] != 1 || len(a.under) > 0 {
		t.Errorf("later %d answers are kept, of callers %v, and %v are under way", len(a.kept), a.of, a.under)
	}
}

// TestErrorsAreKeptForASecond: an error does not keep a page from its answer for as long as an
// answer is kept.
func TestErrorsAreKeptForASecond(t *testing.T) {
	t.Parallel()
	clock := &at{}
	a, asked := newAnswers(clock.now), 0
	asks := func() error {
		_, err := ask(t.Context(), a, question{"alice", "token", "usage"}, time.Hour, func(context.Context) (int, error) {
			if asked++; asked == 1 {
				return 0, errors.New("away")
			}
			return 1, nil
		})
		return err
	}
	if asks() == nil {
		t.Error("the first question has no error")
	}
	clock.seconds.Add(2)
	if err := asks(); err != nil {
		t.Errorf("after two seconds: %v", err)
	}
}
