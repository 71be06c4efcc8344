package httpserver

import (
	"context"
	"net/http"
	"strings"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// usage reports what was used of the workloads that the caller may see.
func (s *Server) usage(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	now := time.Now()
	request, err := usageRequest(r, now)
	if err != nil {
		return err
	}
	if !s.isOperator(caller) {
		queues, err := s.rights(ctx)
		if err != nil {
			return err
		}
		if request.Within = placesOf(queues, caller, request.Queue); len(request.Within) == 0 {
			write(w, http.StatusOK, query.UsageAnswer{Since: request.Since, Until: request.Until, By: request.By, Rows: []query.UsageRow{}})
			return nil
		}
	}
	answer, err := s.Queries.Usage(ctx, request)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, answer)
	return nil
}

// usageRequest reads the report that is wanted from the query.
func usageRequest(r *http.Request, now time.Time) (request query.UsageRequest, err error) {
	values := r.URL.Query()
	request = query.UsageRequest{Until: now, By: list(values["by"]), Queue: values.Get("queue"), Namespace: values.Get("namespace")}
	for parameter, target := range map[string]*time.Time{"since": &request.Since, "until": &request.Until} {
		if text := values.Get(parameter); text != "" {
			if *target, err = time.Parse(time.RFC3339, text); err != nil {
				return request, fail(http.StatusBadRequest, "%s %.80q: want a time such as 2026-01-02T15:04:05Z", parameter, text)
			}
		}
	}
	for parameter, value := range map[string]string{"queue": request.Queue, "namespace": request.Namespace} {
		if why := kube.BadText(value); why != "" || len(value) > longestName {
			return request, fail(http.StatusBadRequest, "%s %.80q: want the name of an object, of at most %d printable characters", parameter, value, longestName)
		}
	}
	for _, name := range list(values["resource"]) {
		request.Resources = append(request.Resources, resource.Name(name))
	}
	for _, text := range list(values["price"]) {
		price, err := query.ParsePrice(text)
		if err != nil {
			return request, fail(http.StatusBadRequest, "%v", err)
		}
		request.Prices = append(request.Prices, price)
	}
	if err := request.Check(now); err != nil {
		return request, fail(http.StatusBadRequest, "%v", err)
	}
	return request, nil
}

// list splits values at commas.
func list(values []string) (all []string) {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}
