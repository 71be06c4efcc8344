package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// browser logs in: the console has nothing for it yet.
func (s *site) browser(ctx context.Context) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.console+"/login", strings.NewReader(url.Values{"token": {operator}}.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close() // only its cookie counts
	if answer.StatusCode != http.StatusSeeOther {
		return nil, fmt.Errorf("the login answers %s", answer.Status)
	}
	return browser, nil
}

// visit measures a page.
func (s *site) visit(ctx context.Context, path string, visits int) (m measured, err error) {
	browser, err := s.browser(ctx)
	if err != nil {
		return m, err
	}
	for i := range visits + 1 {
		took, content, err := s.get(ctx, browser, path)
		if err != nil {
			return m, err
		}
		m.bytes = max(m.bytes, len(content))
		if i == 0 {
			m.first = took
		} else {
			m.later = append(m.later, took)
		}
	}
	return m, nil
}

// get returns a page, and the time until its first byte.
func (s *site) get(ctx context.Context, browser *http.Client, path string) (took time.Duration, content []byte, err error) {
	began := time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(began) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.console+path, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := browser.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if content, err = io.ReadAll(answer.Body); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page answers %s: %.300s", answer.Status, content)
	}
	return took, content, err
}

var workloadLink = regexp.MustCompile(`/workloads/[0-9a-f-]{36}`)

// firstWorkload is the path of a workload that waits.
func (s *site) firstWorkload(ctx context.Context) (string, error) {
	browser, err := s.browser(ctx)
	if err != nil {
		return "", err
	}
	_, content, err := s.get(ctx, browser, "/workloads")
	if err != nil {
		return "", err
	}
	if link := workloadLink.Find(content); link != nil {
		return string(link), nil
	}
	return "", errors.New("the page of workloads has none")
}
