// Package estimate states when gangs that wait will start.
//
// A snapshot of the live state is played forward with the decisions of queue-manager,
// without any new submission, with run times learned from what ended before. What comes
// out is one start time for each gang. How far such times are off is learned from those
// that came true, and turns the one time into quantiles.
//
//	snapshot --FastForward--> wait --Calibration--> p50, p90
//	             ^                        ^
//	          History                 scores of
//	        of run times           earlier estimates
//
// The package is pure: it reads no clock, draws nothing by chance and has no effects. It is
// not for promises: a submission that comes later, of a higher priority, is not in it but
// by what the calibration has learned.
package estimate
