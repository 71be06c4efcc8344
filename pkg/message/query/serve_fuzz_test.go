package query

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzRequest: a request that is taken is read as the same request when it is
// sent on, or refused by an error that does not repeat it at length.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"id":"\u0000","name":"a","phases":["queued"],"limit":-1,"after":9223372036854775807}`,
		`{"id":"018f4e1e-7b1a-7cc0-8000-000000000000","for":"http/a"}`, `{"apply":[{"kind":"ClusterQueue"}],"delete":[{"kind":"x","name":"y"}],"dryRun":true}`,
		`{"message":{"specversion":"1.0"},"uid":"u","waiting":true}`, `{"asker":"a","number":"1","kind":"Secret","namespace":"n","name":"s"}`,
		`{"object":{"type":"Opaque","text":{"a":"b"},"data":{"c":"AQ=="},"digest":"0"}}`, `{"limit":1e400}`, `{"apply":[1,null,"x"]}`, "\xff", `{"id":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readTwice[WorkloadsRequest](t, data)
		readTwice[HistoryRequest](t, data)
		readTwice[ExplainRequest](t, data)
		readTwice[ConfigureRequest](t, data)
		readTwice[struct{}](t, data)
		readTwice[HomeRequest](t, data)
		readTwice[CarryRequest](t, data)
		readTwice[CarriedWanted](t, data)
		readTwice[CarriedFound](t, data)
		var found CarriedFound
		if json.Unmarshal(data, &found) == nil {
			if object, err := found.checked("main"); err == nil && object.Check() != nil {
				t.Fatalf("an object of another digest was accepted: %+v", object)
			}
		}
	})
}

func readTwice[Request any](t *testing.T, data []byte) {
	t.Helper()
	request, err := read[Request]("muster.query.test", data)
	if err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if !errors.As(err, &syntax) && !errors.As(err, &kind) || len(err.Error()) > 1000 {
			t.Fatalf("error of %d bytes: %v", len(err.Error()), err)
		}
		return
	}
	sent, err := json.Marshal(request)
	if err != nil {
		t.Fatalf("what was read cannot be sent on: %v", err)
	}
	again, err := read[Request]("muster.query.test", sent)
	if err != nil {
		t.Fatalf("what was sent on is not read: %v", err)
	}
	twice, err := json.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(sent), string(twice)); diff != "" {
		t.Fatalf("sent on, it is another:\n%s", diff)
	}
}
