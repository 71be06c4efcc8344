package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAStreamOverHTTPGoesOnWithoutRepeating: NATS loses the stream of events while a
// caller follows a workload, and the events are published again under the same ids; the
// caller gets the rest, and no event twice.
func TestAStreamOverHTTPGoesOnWithoutRepeating(t *testing.T) {
	t.Parallel()
	d := newAPIWorld(t, nil)
	var submitted httpapi.Submission
	d.ask("POST", "/v1/queues/default/workloads", fmt.Sprintf(manifest, "glue"), http.StatusCreated, &submitted)
	publish := func(id string, phase workload.Phase) {
		t.Helper()
		record := *submitted.Record
		record.Phase = phase
		e, err := event.New(id, "test", time.Now(), &event.WorkloadChanged{Record: record})
		if err == nil {
			err = d.bus.Publish(d.ctx, event.EventsSubject(record.Queue, record.ID), e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lines := d.stream("/v1/workloads/" + string(submitted.Workload) + "/events")
	var heard []string
	until := func(phase workload.Phase) {
		t.Helper()
		deadline := time.After(patience)
		for {
			select {
			case line, open := <-lines:
				if !open {
					t.Fatalf("the stream ended after %q", heard)
				}
				for _, p := range []workload.Phase{workload.Admitted, workload.Dispatched, workload.Running} {
					if strings.Contains(line, fmt.Sprintf(`"phase":%q`, p)) {
						heard = append(heard, string(p))
					}
				}
				if len(heard) > 0 && heard[len(heard)-1] == string(phase) {
					return
				}
			case <-deadline:
				t.Fatalf("heard %q, not %s", heard, phase)
			}
		}
	}
	publish("one", workload.Admitted)
	until(workload.Admitted)
	publish("two", workload.Dispatched)
	until(workload.Dispatched)

	js, err := jetstream.New(d.bus.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(d.ctx, bus.EventsStream); err != nil {
		t.Fatal(err)
	}
	if err := d.bus.EnsureStreams(d.ctx); err != nil {
		t.Fatal(err)
	}
	d.awaitConsumers(js, 2) // the server's, and that of the test
	publish("one", workload.Admitted)
	publish("two", workload.Dispatched)
	publish("three", workload.Running)
	until(workload.Running)
	if got, want := strings.Join(heard, " "), "admitted dispatched running"; got != want {
		t.Errorf("heard %s, want %s", got, want)
	}
}

// TestPastEventsOverHTTP: since a time a stream has the events from then on; where nothing is to
// follow, it ends with them.
func TestPastEventsOverHTTP(t *testing.T) {
	t.Parallel()
	d := newAPIWorld(t, nil)
	var submitted httpapi.Submission
	d.ask("POST", "/v1/queues/default/workloads", fmt.Sprintf(manifest, "glue"), http.StatusCreated, &submitted)
	record := *submitted.Record
	var stored []time.Time
	for _, phase := range []workload.Phase{workload.Admitted, workload.Dispatched, workload.Running} {
		record.Phase = phase
		e, err := event.New(string(phase), "test", time.Now(), &event.WorkloadChanged{Record: record})
		if err == nil {
			err = d.bus.Publish(d.ctx, event.EventsSubject(record.Queue, record.ID), e)
		}
		if err != nil {
			t.Fatal(err)
		}
		last, err := d.bus.LastMessage(d.ctx, bus.EventsStream, event.EventsSubject(record.Queue, record.ID))
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, last.Stored)
	}
	ofWorkload, ofQueue := "/v1/workloads/"+string(submitted.Workload)+"/events", "/v1/queues/default/events"
	second, before := "since="+stored[1].UTC().Format(time.RFC3339Nano), "since="+stored[0].Add(-time.Hour).UTC().Format(time.RFC3339)
	for path, want := range map[string]string{
		ofWorkload + "?follow=false&" + second: "dispatched running",
		ofQueue + "?follow=false&" + second:    "dispatched running",
		ofWorkload + "?follow=false&" + before: "queued admitted dispatched running",
		ofQueue + "?follow=false&" + before:    "queued admitted dispatched running",
		ofQueue + "?follow=false":              "running",
	} {
		var heard []string
		for line := range d.stream(path) {
			var record workload.Record
			if err := json.Unmarshal([]byte(line), &record); err != nil || record.Name != "glue" {
				t.Errorf("%s: %q, %v", path, line, err)
			}
			heard = append(heard, string(record.Phase))
		}
		if got := strings.Join(heard, " "); got != want {
			t.Errorf("%s: heard %q, want %q", path, got, want)
		}
	}
}

// awaitConsumers waits until the stream of events is read again.
func (d *apiWorld) awaitConsumers(js jetstream.JetStream, want int) {
	d.t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		stream, err := js.Stream(d.ctx, bus.EventsStream)
		if err != nil {
			d.t.Fatal(err)
		}
		if stream.CachedInfo().State.Consumers >= want {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			d.t.Fatalf("the stream has %d consumers, want %d", stream.CachedInfo().State.Consumers, want)
		}
	}
}
