// Package histories plays random histories through pass.Decide, with a light model of two backends, their member clusters and the
// management cluster, and has an oracle judge what becomes of the members. There is no reconciler, no client and no driver, so that a
// history takes milliseconds.
//
//	world_test.go     time, and what happens in a second
//	fleet_test.go     clusters and what runs on them
//	backend_test.go   the two backends, as they err
//	operator_test.go  passes: read, decide, carry out, write, and be cut off
//	spec_test.go      specs as the histories know them
//	contract_test.go  all that knows the contract between operator and drivers
//	choices_test.go   random steps
//	oracle_test.go    the laws; shares no code with what it judges
//	shrink_test.go    the shortest history that still fails, as a test to paste
//	planted_test.go   faults that the oracle must find
//	histories_test.go the test
package histories
