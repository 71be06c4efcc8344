package mistakes

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/message/event"
)

// headers are those of a good submission in binary mode, with changes; an empty value
// removes one.
func headers(changes ...string) nats.Header {
	all := nats.Header{}
	pairs := append([]string{"ce-specversion", "1.0", "ce-id", "mistake", "ce-source", "laptop", "ce-type", event.SubmitType}, changes...)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = []string{pairs[i+1]}
		if pairs[i+1] == "" {
			delete(all, pairs[i])
		}
	}
	return all
}

// messages are wrong NATS messages.
func messages() group {
	g := group{title: "Messages over NATS", intro: "The event `dev.muster.workload.rejected.v1` has the answer as the message of its reason."}
	bare := func(name, data string) {
		g.mistakes = append(g.mistakes, mistake{name: name, give: func(w *world) string {
			return w.publish("muster.submit.default", nil, []byte(data))
		}})
	}
	header := func(name string, changes ...string) {
		g.mistakes = append(g.mistakes, mistake{name: name, give: func(w *world) string {
			return w.publish("muster.submit.default", headers(changes...), []byte(cluster()))
		}})
	}
	bare("An empty message", "")
	bare("A manifest without the headers of a CloudEvent", cluster())
	bare("A truncated CloudEvent in JSON", `{"specversion": "1.0", "id": "1"`)
	bare("A CloudEvent without an id", `{"specversion": "1.0", "source": "laptop", "type": "`+event.SubmitType+`", "data": {}}`)
	bare("A CloudEvent without data", `{"specversion": "1.0", "id": "1", "source": "laptop", "type": "`+event.SubmitType+`"}`)
	bare("A CloudEvent with data twice", `{"specversion": "1.0", "id": "1", "source": "laptop", "type": "`+event.SubmitType+`", "data": {}, "data_base64": "e30="}`)
	bare("A CloudEvent whose data is a number", `{"specversion": "1.0", "id": "1", "source": "laptop", "type": "`+event.SubmitType+`", "data": 7}`)
	bare("An empty batch", "[]")
	bare("A batch of too many", "["+strings.Repeat("{},", 256)+"{}]")
	bare("A message that is too large", strings.Repeat("x", event.MaxSubmission+1))
	header("Another version of CloudEvents", "ce-specversion", "0.3")
	header("Another type of event", "ce-type", "com.example.job.submit")
	header("No source", "ce-source", "")
	header("An id that is too long", "ce-id", strings.Repeat("x", 300))
	header("An id that cannot be printed", "ce-id", "one\x07two")
	header("A source that is reserved for HTTP", "ce-source", "http/bob")
	header("A priority that is a word", "ce-priority", "high")
	header("A priority that is too large", "ce-priority", "99999999999")
	header("A priority class with a hostile name", "ce-priorityclass", "../../etc/passwd")
	header("A priority and a priority class", "ce-priority", "5", "ce-priorityclass", "urgent")
	header("A priority class that does not exist", "ce-priorityclass", "urgent")
	for _, c := range []struct{ name, subject string }{
		{"A queue that does not exist", "muster.submit.defualt"},
		{"A queue with an invalid name", "muster.submit.Default_Queue"},
		{"A queue of other submitters", "muster.submit.theirs"},
	} {
		g.mistakes = append(g.mistakes, mistake{name: c.name, typed: c.subject, give: func(w *world) string {
			return w.publish(c.subject, headers("ce-id", c.subject), []byte(cluster()))
		}})
	}
	return g
}

// requests are wrong requests over HTTP.
func requests() group {
	g := group{title: "Requests over HTTP", intro: "The status, and the member `error` of the answer."}
	for _, c := range []struct{ name, method, path, bearer, body string }{
		{"No token", "POST", "/v1/queues/default/workloads", "", cluster()},
		{"A wrong token", "POST", "/v1/queues/default/workloads", "guessed", cluster()},
		{"A path that does not exist", "GET", "/v1/jobs", token, ""},
		{"A method that a path does not have", "PUT", "/v1/queues/default/workloads", token, cluster()},
		{"A queue that does not exist, over HTTP", "POST", "/v1/queues/defualt/workloads", token, cluster()},
		{"A queue with an invalid name, over HTTP", "POST", "/v1/queues/Default_Queue/workloads", token, cluster()},
		{"A priority that is a word, over HTTP", "POST", "/v1/queues/default/workloads?priority=high", token, cluster()},
		{"An empty body", "POST", "/v1/queues/default/workloads", token, ""},
		{"A body that is too large", "POST", "/v1/queues/default/workloads", token, strings.Repeat("x", event.MaxSubmission+1)},
		{"A workload with an invalid id", "GET", "/v1/workloads/glue", token, ""},
		{"A workload that does not exist", "GET", "/v1/workloads/00000000-0000-5000-8000-000000000000", token, ""},
		{"A phase that does not exist, over HTTP", "GET", "/v1/workloads?phase=asleep", token, ""},
		{"A limit that is not a number", "GET", "/v1/workloads?limit=many", token, ""},
		{"A parameter that does not exist", "GET", "/v1/workloads?colour=red", token, ""},
	} {
		g.mistakes = append(g.mistakes, mistake{name: c.name, typed: fmt.Sprintf("%s %s", c.method, c.path), give: func(w *world) string {
			return w.ask(c.method, c.path, c.bearer, c.body)
		}})
	}
	return g
}
