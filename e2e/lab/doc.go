// SPDX-License-Identifier: Apache-2.0

// Package lab runs a fleet of real control planes as plain processes: Karmada, Open Cluster Management and a number of
// member clusters with OpenKruise and KWOK nodes. No container engine is needed. Every component is built from a
// pinned Go module (see components/), listens on the loopback interface only and keeps its state in one folder.
//
// The processes outlive the caller of Up; Open finds them again and Down ends them.
package lab
