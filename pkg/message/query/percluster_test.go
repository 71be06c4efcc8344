package query_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestOneClusterLeavesTurnsToOthers: of the questions of one cluster a few are answered at once. It is
// told to ask the others again, and another cluster has its answer meanwhile.
func TestOneClusterLeavesTurnsToOthers(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t).Conn()
	hold, began := make(chan struct{}), make(chan struct{}, 32)
	waitFor := func(ctx context.Context, cluster string) error {
		if cluster != "west" {
			return nil
		}
		began <- struct{}{}
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	find := func(ctx context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		return query.WorkloadsAnswer{}, waitFor(ctx, string(r.ID))
	}
	for _, err := range []error{
		query.HandleTruth(t.Context(), nc, find),
		query.HandleCarry(t.Context(), nc, func(ctx context.Context, cluster string, _ query.CarryRequest) (query.CarryAnswer, error) {
			return query.CarryAnswer{}, waitFor(ctx, cluster)
		}),
		query.HandleHome(t.Context(), nc, func(ctx context.Context, cluster, _ string, _ query.HomeRequest) (query.HomeAnswer, error) {
			return query.HomeAnswer{}, waitFor(ctx, cluster)
		}),
		nc.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	client := query.NewClient(nc)
	for name, endpoint := range map[string]struct {
		atOnce int
		ask    func(cluster string) error
	}{
		"truth": {32, func(cluster string) error {
			_, err := client.Truth(t.Context(), cluster, workload.ID(cluster))
			return err
		}},
		"carry": {2, func(cluster string) error {
			_, err := client.Carry(t.Context(), cluster, query.CarryRequest{})
			return err
		}},
		"home": {16, func(cluster string) error {
			_, err := client.Home(t.Context(), cluster, "q", query.HomeRequest{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := make(chan error, endpoint.atOnce)
			for range endpoint.atOnce {
				go func() { answers <- endpoint.ask("west") }()
			}
			for range endpoint.atOnce {
				<-began
			}
			var problem *query.ProblemError
			if err := endpoint.ask("west"); !errors.As(err, &problem) || !problem.Busy {
				t.Errorf("one more is answered %v, want that it is busy", err)
			}
			if err := endpoint.ask("east"); err != nil {
				t.Errorf("another cluster is answered %v", err)
			}
			for range endpoint.atOnce {
				hold <- struct{}{}
			}
			for range endpoint.atOnce {
				if err := <-answers; err != nil {
					t.Error(err)
				}
			}
			if err := endpoint.ask("east"); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestRequestsAreBoundedBeforeTheyAreDecoded at the endpoints of clusters.
func TestRequestsAreBoundedBeforeTheyAreDecoded(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t).Conn()
	err := query.HandleCarry(t.Context(), nc, func(context.Context, string, query.CarryRequest) (query.CarryAnswer, error) {
		t.Error("it was answered")
		return query.CarryAnswer{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ data, want string }{
		"long": {`{"name":"` + strings.Repeat("x", 5000) + `"}`, "has 5011 bytes; want at most 4096"},
		"deep": {`{"name":[[[[[[]]]]]]}`, "is nested more than 4 deep"},
		"many": {`{"name":[` + strings.Repeat("1,", 40) + `1]}`, "has more than 32 values"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := nc.Request(query.CarrySubject("west"), []byte(c.data), 20*time.Second)
			if err != nil || answer.Header.Get("Muster-Problem") == "" || !strings.Contains(string(answer.Data), c.want) {
				t.Errorf("answered %+v, %v; want %q", answer, err, c.want)
			}
		})
	}
}

// TestADispatcherThatIsBusySaysSo: it reads a few objects at once, and the question comes again later.
func TestADispatcherThatIsBusySaysSo(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t).Conn()
	hold, began := make(chan struct{}), make(chan struct{}, 8)
	err := query.HandleCarried(t.Context(), nc, "main", func(context.Context, query.CarriedWanted) (*query.CarriedObject, error) {
		began <- struct{}{}
		<-hold
		return nil, errors.New("there is none")
	})
	if err != nil {
		t.Fatal(err)
	}
	carrier, err := query.NewCarrier(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 8)
	for range 8 {
		go func() {
			_, err := carrier.Fetch(t.Context(), "main", query.CarriedWanted{Kind: workload.KindSecret, Name: "a"})
			answers <- err
		}()
	}
	for range 8 {
		<-began
	}
	var problem *query.ProblemError
	if _, err := carrier.Fetch(t.Context(), "main", query.CarriedWanted{Kind: workload.KindSecret, Name: "a"}); !errors.As(err, &problem) || !problem.Busy || !strings.Contains(err.Error(), "8 objects are being read") {
		t.Errorf("one more: %v, want that it is busy", err)
	}
	close(hold)
	for range 8 {
		if err := <-answers; err == nil || !strings.Contains(err.Error(), "there is none") {
			t.Errorf("answered %v", err)
		}
	}
}
