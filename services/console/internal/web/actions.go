package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/internal/client/overhttp"
)

// change is something that a caller may ask of a workload or a queue: the inputs of its form and
// the request to the HTTP API, which judges it.
type change struct {
	name, label string
	// says is what happens, for the confirmation.
	says string
	// operators: the HTTP API takes it from operators alone.
	operators bool
	inputs    []page.Input
	// ofWorkload reports whether it is worth asking of a workload now.
	ofWorkload func(r *workload.Record) bool
	askOf      func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error
}

const longestWhy = 1000

func why() page.Input { return page.Input{Name: "why", Label: "Reason", Longest: longestWhy} }

func waits(r *workload.Record) bool {
	return r.Phase == workload.Queued || r.Phase == workload.Evicting
}

// workloadChanges are what may be asked of a workload.
func workloadChanges() []change {
	return []change{
		{
			name: "cancel", label: "Cancel", says: "End the workload for good. What of it runs is deleted.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool { return !r.Phase.Final() && !r.CancelRequested },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.Cancel(ctx, id, form.Get("why"))
			},
		},
		{
			name: "hold", label: "Hold", says: "Keep the workload from admission until it is resumed. It keeps its place in the queue, and others pass it.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool { return waits(r) && r.Hold == nil },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.HoldWorkload(ctx, id, false, form.Get("why"))
			},
		},
		{
			name: "resume", label: "Resume", says: "Let the held workload be admitted again.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool { return r.Hold != nil },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.HoldWorkload(ctx, id, true, form.Get("why"))
			},
		},
		{
			name: "move", label: "Move", says: "Have the waiting workload wait in another queue.",
			inputs:     []page.Input{{Name: "queue", Label: "To the queue", Longest: 253, Required: true}, why()},
			ofWorkload: func(r *workload.Record) bool { return r.Phase == workload.Queued },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.Move(ctx, id, form.Get("queue"), form.Get("why"))
			},
		},
		{
			name: "requeue", label: "Requeue", says: "Take the workload down, and have it wait again at its place by submission. What it has not saved is lost.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool {
				return slices.Contains([]workload.Phase{workload.Admitted, workload.Dispatched, workload.Running}, r.Phase)
			},
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.Requeue(ctx, id, form.Get("why"))
			},
		},
		{
			name: "priority", label: "Set priority", says: "Set the priority of the workload. A higher number comes first, and may have others evicted.", operators: true,
			inputs:     []page.Input{{Name: "value", Label: "Priority", Longest: 11, Number: true, Required: true}, why()},
			ofWorkload: func(r *workload.Record) bool { return !r.Phase.Final() },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				value, err := strconv.ParseInt(form.Get("value"), 10, 32)
				if err != nil {
					return refuse(http.StatusBadRequest, "Priority %.20q: want a whole number of 32 bits.", form.Get("value"))
				}
				return api.SetPriority(ctx, id, int32(value), form.Get("why"))
			},
		},
	}
}

// workloadActions are the changes that the caller may ask of a workload now.
func (s *Server) workloadActions(c *caller, r workload.Record) []page.Action {
	var all []page.Action
	for _, change := range workloadChanges() {
		if s.Actions && (c.Operator || !change.operators) && change.ofWorkload(&r) {
			all = append(all, page.Action{Name: change.name, Label: change.label, Link: page.WorkloadLink(r.ID) + "/" + change.name})
		}
	}
	return all
}

// queueActions are those that the caller may ask of a queue now.
func (s *Server) queueActions(c *caller, q query.Queue, namespace string) []page.Action {
	if !s.Actions || !c.Operator {
		return nil
	}
	name, label := "hold", "Hold"
	if q.Hold != nil {
		name, label = "resume", "Resume"
	}
	link := "/queues/" + url.PathEscape(q.Name) + "/" + name
	if namespace != "" {
		link += "?" + url.Values{"namespace": {namespace}}.Encode()
	}
	return []page.Action{{Name: name, Label: label, Link: link}}
}

// asked is the label of the action that the caller has just asked for; empty for none.
func asked(r *http.Request) string {
	for _, t := range targets() {
		if t.change.name == r.URL.Query().Get("asked") {
			return t.change.label
		}
	}
	return ""
}

// target is a change with the path of its form.
type target struct {
	path   string
	change change
	queue  bool // it is of a queue
}

func targets() []target {
	var all []target
	for _, c := range workloadChanges() {
		all = append(all, target{path: "/workloads/{id}/" + c.name, change: c})
	}
	all = append(all,
		target{path: "/queues/{queue}/hold", queue: true, change: change{
			name: "hold", label: "Hold", says: "Admit nothing of the queue until it is resumed. Those who wait see the reason.", operators: true, inputs: []page.Input{why()},
		}},
		target{path: "/queues/{queue}/resume", queue: true, change: change{
			name: "resume", label: "Resume", says: "Admit workloads of the queue again.", operators: true,
		}})
	return all
}

// subject is what a change is asked of: its title and its page.
func (s *Server) subject(ctx context.Context, r *http.Request, c *caller, of target) (title, back string, err error) {
	if of.queue {
		q, namespace, err := s.queue(ctx, r, c)
		title = "queue " + q.Name
		if namespace != "" {
			title += " in namespace " + namespace
		}
		return title, page.QueueLink(r.PathValue("queue"), namespace), err
	}
	one, err := s.workload(ctx, c, workload.ID(r.PathValue("id")))
	return one.Title(), page.WorkloadLink(workload.ID(r.PathValue("id"))), err
}

// mayAct refuses changes where the console shows only, and those that the HTTP API would refuse.
func (s *Server) mayAct(c *caller, of target) error {
	if !s.Actions {
		return refuse(http.StatusForbidden, "This console changes nothing: it runs without --actions.")
	}
	if of.change.operators && !c.Operator {
		return refuse(http.StatusForbidden, "Only an operator may ask for this.")
	}
	return nil
}

// confirm shows the form of a change.
func (s *Server) confirm(of target) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
		defer cancel()
		if err := s.mayAct(c, of); err != nil {
			return err
		}
		title, back, err := s.subject(ctx, r, c, of)
		if err != nil {
			return err
		}
		return s.writeForm(w, r, c, of, http.StatusOK, page.Confirm{Back: back, What: of.change.says}, title)
	}
}

func (s *Server) writeForm(w http.ResponseWriter, r *http.Request, c *caller, of target, status int, form page.Confirm, title string) error {
	form.Label, form.Link, form.Form = of.change.label, r.URL.RequestURI(), c.Form
	for _, in := range of.change.inputs {
		in.Value = r.PostFormValue(in.Name)
		form.Inputs = append(form.Inputs, in)
	}
	region, err := s.region("confirm", form)
	if err != nil {
		return err
	}
	s.write(w, r, c.Session, status, page.Frame{Title: of.change.label + ": " + title, Region: region})
	return nil
}

// act asks the HTTP API for a change, and writes a line of the audit log either way.
func (s *Server) act(of target) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
		defer cancel()
		err := s.ask(ctx, r, c, of)
		s.audit(r, c, of, err)
		if err != nil {
			status, text := s.failed(r, err)
			if status == http.StatusUnauthorized || !c.Sends(r.PostFormValue("form")) {
				return err
			}
			title, back, missing := s.subject(ctx, r, c, of)
			if missing != nil {
				return err
			}
			return s.writeForm(w, r, c, of, status, page.Confirm{Back: back, What: of.change.says, Problem: text}, title)
		}
		back := page.WorkloadLink(workload.ID(r.PathValue("id")))
		if of.queue {
			back = page.QueueLink(r.PathValue("queue"), r.URL.Query().Get("namespace"))
		}
		http.Redirect(w, r, withAsked(back, of.change.name), http.StatusSeeOther)
		return nil
	}
}

func withAsked(link, name string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		return link
	}
	values := parsed.Query()
	values.Set("asked", name)
	parsed.RawQuery = values.Encode()
	return parsed.String()
}

// ask sends a change to the HTTP API.
func (s *Server) ask(ctx context.Context, r *http.Request, c *caller, of target) error {
	if err := s.mayAct(c, of); err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return refuse(http.StatusBadRequest, "The form cannot be read: it is too long, or is no form.")
	}
	if !c.Sends(r.PostForm.Get("form")) {
		return refuse(http.StatusForbidden, "This form is not of your session. Go back, reload the page and send it again.")
	}
	for _, in := range of.change.inputs {
		if value := r.PostForm.Get(in.Name); len(value) > in.Longest || in.Required && value == "" {
			return refuse(http.StatusBadRequest, "%s: want a text of at most %d bytes.", in.Label, in.Longest)
		}
	}
	if of.queue {
		if _, _, err := s.queue(ctx, r, c); err != nil { // it may be one of several with the name
			return err
		}
		return c.api.HoldQueue(ctx, r.PathValue("queue"), r.URL.Query().Get("namespace"), of.change.name == "resume", r.PostForm.Get("why"))
	}
	return of.change.askOf(ctx, c.api, workload.ID(r.PathValue("id")), r.PostForm)
}

// longestLogged bounds a text of a caller in the log.
const longestLogged = 300

// audit logs who asked for what, and what became of it. The log has no token and no session.
// What changed nothing is a warning, of which the log takes a share for each caller.
func (s *Server) audit(r *http.Request, c *caller, of target, err error) {
	fields := []zap.Field{
		zap.String("caller", c.Caller), zap.String("action", of.change.name), zap.String("remote", r.RemoteAddr),
		zap.String("workload", cut(r.PathValue("id"))), zap.String("queue", cut(r.PathValue("queue"))), zap.String("namespace", cut(r.URL.Query().Get("namespace"))),
	}
	for _, in := range of.change.inputs {
		fields = append(fields, zap.String("given_"+in.Name, cut(r.PostFormValue(in.Name))))
	}
	var own *refusal
	status := overhttp.StatusOf(err)
	switch {
	case err == nil:
		s.Logger.Info("action asked", fields...)
	case errors.As(err, &own), status >= 400 && status < 500:
		s.Logger.Warn("action refused", append(fields, zap.Error(err))...)
	default: // it may have happened all the same
		s.Logger.Info("action failed", append(fields, zap.Error(err))...)
	}
}

func cut(text string) string { return text[:min(len(text), longestLogged)] }
