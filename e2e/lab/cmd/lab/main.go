// SPDX-License-Identifier: Apache-2.0

// Command lab brings the test fleet up and down.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use: "lab", Short: "A fleet of real control planes as plain processes",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", lab.DefaultDir, "folder of the fleet's state")
	root.AddCommand(upCommand(&dir), statusCommand(&dir), downCommand(&dir), memberCommand(&dir), heartbeatCommand(&dir))
	return root
}

func upCommand(dir *string) *cobra.Command {
	opts := lab.Options{Members: lab.DefaultMembers}
	cmd := &cobra.Command{
		Use: "up", Short: "Start the fleet, or what of it does not run, and leave it running", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if env := os.Getenv("LAB_MEMBERS"); env != "" && !cmd.Flags().Changed("members") {
				n, err := strconv.Atoi(env)
				if err != nil {
					return fmt.Errorf("LAB_MEMBERS: %w", err)
				}
				opts.Members = n
			}
			if env := os.Getenv("LAB_PULL"); env != "" && !cmd.Flags().Changed("pull") {
				opts.Pull = strings.Split(env, ",")
			}
			opts.WorkWebhook = opts.WorkWebhook || os.Getenv("LAB_WORK_WEBHOOK") != ""
			if opts.Members < 1 {
				return fmt.Errorf("a fleet has at least one member")
			}
			opts.Dir, opts.Out = *dir, cmd.OutOrStdout()
			f, err := lab.Up(cmd.Context(), opts)
			if err != nil {
				return err
			}
			fmt.Fprintf(opts.Out, "\nkubeconfigs: %s\nkubectl:     %s\n", f.Kubeconfig("*"), f.Kubectl())
			return nil
		},
	}
	cmd.Flags().IntVar(&opts.Members, "members", opts.Members, "number of member clusters (also LAB_MEMBERS)")
	cmd.Flags().StringSliceVar(&opts.Pull, "pull", nil, "members in Karmada's pull mode: member3, or several with commas (also LAB_PULL)")
	cmd.Flags().BoolVar(&opts.WorkWebhook, "work-webhook", false, "run OCM's webhook for ManifestWorks (also LAB_WORK_WEBHOOK)")
	cmd.Flags().BoolVar(&opts.DifferentNames, "different-names", false, "let OCM know the members under other names than Karmada")
	return cmd
}

func statusCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "List the fleet's processes; fail if one has died", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := lab.Open(*dir)
			if err != nil {
				return err
			}
			components, err := f.Status()
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "COMPONENT\tPID\tSTATE\tCPU (S)\tRSS (MIB)\tPSS (MIB)")
			var rss, pss int64
			for _, c := range components {
				fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%d\t%d\n", c.Name, c.PID, stateOf(c), c.CPU.Seconds(), c.RSS>>20, c.PSS>>20)
				rss, pss = rss+c.RSS, pss+c.PSS
			}
			fmt.Fprintf(w, "all\t\t\t\t%d\t%d\n", rss>>20, pss>>20)
			if err := w.Flush(); err != nil {
				return err
			}
			return f.Check(cmd.Context())
		},
	}
}

func stateOf(c lab.Component) string {
	switch {
	case c.Alive:
		return "alive"
	case c.Paused:
		return "paused"
	default:
		return "dead"
	}
}

func downCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the fleet and delete its folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(*dir); os.IsNotExist(err) {
				return nil
			}
			f, err := lab.Open(*dir)
			if err != nil {
				return err
			}
			return f.Down(cmd.Context())
		},
	}
}

func memberCommand(dir *string) *cobra.Command {
	member := &cobra.Command{Use: "member", Short: "Add, pause and resume members of a running fleet"}
	for _, c := range []struct {
		use, short string
		do         func(context.Context, *lab.Fleet, string) error
	}{
		{"add", "Start another member and join it to Karmada and OCM", func(ctx context.Context, f *lab.Fleet, name string) error {
			_, err := f.AddMember(ctx, name)
			return err
		}},
		{"pause", "Stop a member's API server", func(ctx context.Context, f *lab.Fleet, name string) error { return f.PauseMember(ctx, name) }},
		{"resume", "Start a paused member's API server again", func(ctx context.Context, f *lab.Fleet, name string) error { return f.ResumeMember(ctx, name) }},
	} {
		member.AddCommand(&cobra.Command{
			Use: c.use + " NAME", Short: c.short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				f, err := lab.Open(*dir)
				if err != nil {
					return err
				}
				f.SetOutput(cmd.OutOrStdout())
				return c.do(cmd.Context(), f, args[0])
			},
		})
	}
	return member
}

// heartbeatCommand is one of the fleet's components, not for users.
func heartbeatCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "heartbeat", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return lab.Heartbeat(cmd.Context(), *dir, cmd.ErrOrStderr())
		},
	}
}
