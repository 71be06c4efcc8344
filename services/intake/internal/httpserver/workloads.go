package httpserver

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// record returns a workload that the caller may see. The error for a hidden workload is
// the one for a missing workload.
func (s *Server) record(ctx context.Context, caller string, id workload.ID) (workload.Record, error) {
	if uuid.Validate(string(id)) != nil {
		return workload.Record{}, fail(http.StatusNotFound, "there is no workload %.80q: want its id, the UUID in the answer to its submission", string(id))
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return workload.Record{}, err
	}
	answer, err := s.Queries.Workloads(ctx, query.WorkloadsRequest{ID: id})
	if err != nil {
		return workload.Record{}, err
	}
	if len(answer.Workloads) == 0 || !s.may(queues, caller, answer.Workloads[0].Queue, answer.Workloads[0].Namespace) {
		return workload.Record{}, fail(http.StatusNotFound, "there is no workload %q", id)
	}
	if s.isOperator(caller) {
		return answer.Workloads[0], nil
	}
	return answer.Workloads[0].ForTenant(), nil
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	request, err := listRequest(r)
	if err != nil {
		return err
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	if request.AfterID != "" {
		if _, err := s.record(ctx, caller, request.AfterID); missing(err) {
			return fail(http.StatusBadRequest, "after %q: there is no such workload; begin again with the first page", request.AfterID)
		} else if err != nil {
			return err
		}
	}
	page := httpapi.WorkloadsPage{Workloads: []workload.Record{}}
	operator := s.isOperator(caller)
	if !operator {
		request.Within = placesOf(queues, caller, request.Queue)
	}
	if !operator && len(request.Within) == 0 {
		write(w, http.StatusOK, page)
		return nil
	}
	answer, err := s.Queries.Workloads(ctx, request)
	if err != nil {
		return err
	}
	for _, record := range answer.Workloads { // an older queue-manager answers with all
		if operator {
			page.Workloads = append(page.Workloads, record)
		} else if may(queues, caller, record.Queue, record.Namespace) {
			page.Workloads = append(page.Workloads, record.ForTenant())
		}
	}
	if n := len(page.Workloads); answer.Next != 0 && n > 0 {
		page.Next = page.Workloads[n-1].ID
	}
	write(w, http.StatusOK, page)
	return nil
}

// missing reports whether the error means that there is no such workload for the caller.
func missing(err error) bool {
	var failed *failure
	return errors.As(err, &failed) && failed.status == http.StatusNotFound
}

// placesOf returns where the caller may see workloads: in one queue, or in all if it is
// empty.
func placesOf(queues map[string]query.Queue, caller, queue string) (places []query.Place) {
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		if queue != "" && name != queue {
			continue
		}
		namespaces, every := workload.Rules{Submitters: queues[name].Submitters}.NamespacesOf(caller)
		if every || len(namespaces) > 0 {
			places = append(places, query.Place{Queue: name, Namespaces: namespaces})
		}
	}
	return places
}

// longestName is the longest name of an object in Kubernetes.
const longestName = 253

// longestWhy bounds the reason for a cancellation.
const longestWhy = 1000

// listRequest reads the filters and the page from the query.
func listRequest(r *http.Request) (query.WorkloadsRequest, error) {
	values := r.URL.Query()
	request := query.WorkloadsRequest{Name: values.Get("name"), Namespace: values.Get("namespace"), Queue: values.Get("queue")}
	for parameter, value := range map[string]string{"name": request.Name, "namespace": request.Namespace, "queue": request.Queue} {
		if why := kube.BadText(value); why != "" || len(value) > longestName {
			return request, fail(http.StatusBadRequest, "%s %.80q: want the name of an object, of at most %d printable characters", parameter, value, longestName)
		}
	}
	for _, names := range values["phase"] {
		for name := range strings.SplitSeq(names, ",") {
			phase := workload.Phase(name)
			if !slices.Contains(workload.Phases(), phase) {
				return request, fail(http.StatusBadRequest, "phase %.80q: want one of %s", name, phases())
			}
			request.Phases = append(request.Phases, phase)
		}
	}
	var err error
	if text := values.Get("labelSelector"); text != "" {
		if request.Labels, err = query.ParseSelector(text); err != nil {
			return request, fail(http.StatusBadRequest, "labelSelector: %v", err)
		}
	}
	if text := values.Get("limit"); text != "" {
		if request.Limit, err = strconv.Atoi(text); err != nil || request.Limit < 1 || request.Limit > query.MaxPage {
			return request, fail(http.StatusBadRequest, "limit %q: want a whole number from 1 to %d", text, query.MaxPage)
		}
	}
	if text := values.Get("after"); text != "" {
		if request.AfterID = workload.ID(text); uuid.Validate(text) != nil {
			return request, fail(http.StatusBadRequest, "after %.80q: want the id that the page before has as next", text)
		}
	}
	request.Order = values.Get("order")
	if err := request.CheckOrder(); err != nil {
		return request, fail(http.StatusBadRequest, "%v", err)
	}
	return request, nil
}

// phases lists the phases of a workload.
func phases() string {
	var names []string
	for _, phase := range workload.Phases() {
		names = append(names, string(phase))
	}
	return strings.Join(names, ", ")
}

func (s *Server) describe(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	history, err := s.Queries.History(ctx, query.HistoryRequest{ID: record.ID})
	if err != nil {
		return err
	}
	for i := range history.Entries {
		if s.isOperator(caller) {
			break
		}
		history.Entries[i].Reason = history.Entries[i].Reason.ForTenant()
	}
	write(w, http.StatusOK, httpapi.Description{Record: record, History: history.Entries, Estimates: history.Estimates})
	return nil
}

func (s *Server) manifest(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	answer, err := s.Queries.Manifest(ctx, query.ManifestRequest{ID: record.ID})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, answer)
	return nil
}

func (s *Server) explain(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	if record.Phase.Final() {
		return fail(http.StatusNotFound, "workload %s has ended, as %s: there is nothing to explain", record.ID, record.Phase)
	}
	wanted := r.URL.Query().Get("certificate")
	if wanted != "" && wanted != "true" && wanted != "false" {
		return fail(http.StatusBadRequest, "certificate %.80q: want true or false", wanted)
	}
	request := query.ExplainRequest{ID: record.ID, For: caller, Certificate: wanted == "true"}
	if s.isOperator(caller) {
		request.For = ""
	}
	answer, err := s.Queries.Explain(ctx, request)
	if err != nil {
		return err
	}
	if request.For != "" {
		answer.Explanation = answer.ForTenant() // an older queue-manager answers as for an operator
	}
	write(w, http.StatusOK, answer)
	return nil
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	why, err := whyOf(r)
	if err != nil {
		return err
	}
	if !record.Phase.Final() {
		cancel := &event.WorkloadCancel{Workload: record.ID, Why: why, Submitter: caller}
		if s.isOperator(caller) {
			cancel.Submitter = ""
		}
		if err := s.publishOf(ctx, record, cancel); err != nil {
			return err
		}
	}
	write(w, http.StatusAccepted, httpapi.Cancelling{Workload: record.ID})
	return nil
}
