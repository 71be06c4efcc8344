package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/internal/client/overhttp"
)

// target is a change with the path of its form.
type target struct {
	path                 string
	change               change
	queue, cluster, node bool // it is of a queue, of a cluster, of a node; otherwise of a workload
}

func targets() []target {
	var all []target
	for _, c := range workloadChanges() {
		all = append(all, target{path: "/workloads/{id}/" + c.name, change: c})
	}
	all = append(all,
		target{path: "/queues/{queue}/hold", queue: true, change: change{
			name: "hold", label: "Hold", effect: "Admit nothing of the queue until it is resumed. Those who wait see the reason.", operators: true, inputs: []page.Input{why()},
		}},
		target{path: "/queues/{queue}/resume", queue: true, change: change{
			name: "resume", label: "Resume", effect: "Admit workloads of the queue again.", operators: true,
		}})
	for _, c := range clusterChanges() {
		all = append(all, target{path: "/clusters/{cluster}/" + c.name, cluster: true, change: c})
	}
	for _, c := range nodeChanges() {
		all = append(all, target{path: "/nodes/{cluster}/{node}/" + c.name, node: true, change: c})
	}
	return all
}

// page is the link of the page to which a request for a change leads back.
func (of target) page(r *http.Request) string {
	switch {
	case of.queue:
		return page.QueueLink(r.PathValue("queue"), r.URL.Query().Get("namespace"))
	case of.cluster:
		return "/"
	case of.node:
		return page.NodeLink(r.PathValue("cluster"), r.PathValue("node"))
	}
	return page.WorkloadLink(workload.ID(r.PathValue("id")))
}

// subject is the title of what a change is asked of.
func (s *Server) subject(ctx context.Context, r *http.Request, c *caller, of target) (title string, err error) {
	switch {
	case of.queue:
		q, namespace, err := s.queue(ctx, r, c)
		title = "queue " + q.Name
		if namespace != "" {
			title += " in namespace " + namespace
		}
		return title, err
	case of.cluster:
		name := r.PathValue("cluster")
		status, err := s.status(ctx, c)
		if err == nil && !slices.ContainsFunc(status.Clusters, func(c query.ClusterStatus) bool { return c.Name == name }) {
			err = refuse(http.StatusNotFound, "There is no cluster %.80q.", name)
		}
		return "cluster " + name, err
	case of.node:
		n, err := s.node(ctx, r, c)
		return "node " + n.Name + " of cluster " + n.Cluster, err
	}
	one, err := s.workload(ctx, c, workload.ID(r.PathValue("id")))
	return one.Title(), err
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
		title, err := s.subject(ctx, r, c, of)
		if err != nil {
			return err
		}
		return s.writeForm(w, r, c, of, http.StatusOK, page.Confirm{Back: of.page(r), What: of.change.effect}, title)
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
			title, missing := s.subject(ctx, r, c, of)
			if missing != nil {
				return err
			}
			return s.writeForm(w, r, c, of, status, page.Confirm{Back: of.page(r), What: of.change.effect, Problem: text}, title)
		}
		http.Redirect(w, r, withAsked(of.page(r), of.change.name), http.StatusSeeOther)
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
	if of.cluster {
		return c.api.CordonCluster(ctx, r.PathValue("cluster"), of.change.name == "uncordon", of.change.name == "drain", r.PostForm.Get("why"))
	}
	if of.node {
		n, err := s.node(ctx, r, c)
		if err != nil {
			return err
		}
		return s.changeNode(ctx, c.api, n, of.change.name, r.PostForm)
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
		zap.String("cluster", cut(r.PathValue("cluster"))), zap.String("node", cut(r.PathValue("node"))),
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
