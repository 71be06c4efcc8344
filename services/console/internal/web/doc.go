// Package web serves the console: pages of what the HTTP API answers to the caller's own token,
// updates of these pages as server-sent events, and forms for what the caller may change.
//
//	browser -- cookie --> session -- token --> HTTP API (intake)
//	        <-- HTML ---- page    <-- answers, kept for a moment per caller
//
// It has no rights of its own and judges none: the HTTP API does, for each question and each
// change. Package page makes the HTML.
package web
