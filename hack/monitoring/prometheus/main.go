// SPDX-License-Identifier: Apache-2.0

// Program prometheus is the engine of Prometheus for scenarios: its discovery of targets from files, its scraping, its store and its rules, from
// Prometheus' own packages and its own configuration file. What would need hundreds of packages more is left out: clouds to discover
// targets in, the user interface and remote storage. Of the HTTP API it serves /api/v1/alerts and /api/v1/rules.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/file" // file_sd_configs
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

// Limits of a query, as Prometheus has them unless it is told otherwise.
const (
	maxSamples   = 50_000_000
	queryTimeout = 2 * time.Minute
)

// noticed is how soon new targets are scraped. Prometheus takes five seconds for each of the two steps to it.
const noticed = time.Second

// options are flags.
type options struct {
	config string
	data   string
	listen string
}

func main() {
	var o options
	flag.StringVar(&o.config, "config", "prometheus.yaml", "Prometheus' configuration file")
	flag.StringVar(&o.data, "data", "data", "folder for the samples")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:9090", "address of the HTTP API")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))); err != nil {
		fmt.Fprintln(os.Stderr, "prometheus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, log *slog.Logger) (err error) {
	cfg, err := config.LoadFile(o.config, false, log)
	if err != nil {
		return fmt.Errorf("load configuration: %w", err)
	}
	registry := prometheus.NewRegistry()
	db, err := tsdb.Open(o.data, log, registry, tsdb.DefaultOptions(), nil)
	if err != nil {
		return fmt.Errorf("open store %s: %w", o.data, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	manager, err := judge(ctx, cfg, db, log)
	if err != nil {
		return err
	}
	defer manager.Stop()
	scraper, err := collect(ctx, cfg, db, registry, log)
	if err != nil {
		return err
	}
	defer scraper.Stop()
	return serve(ctx, o.listen, api(manager))
}

// collect begins to scrape what is found.
func collect(ctx context.Context, cfg *config.Config, db *tsdb.DB, registry *prometheus.Registry, log *slog.Logger) (*scrape.Manager, error) {
	metrics, err := discovery.CreateAndRegisterSDMetrics(registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics of discovery: %w", err)
	}
	discoverer := discovery.NewManager(ctx, log, registry, metrics, discovery.Updatert(noticed))
	if discoverer == nil {
		return nil, errors.New("discovery cannot be set up") // it has logged why
	}
	scraper, err := scrape.NewManager(&scrape.Options{DiscoveryReloadInterval: model.Duration(noticed)}, log, nil, db, registry)
	if err != nil {
		return nil, fmt.Errorf("set up scraping: %w", err)
	}
	if err := scraper.ApplyConfig(cfg); err != nil {
		return nil, fmt.Errorf("configure scraping: %w", err)
	}
	jobs, err := cfg.GetScrapeConfigs()
	if err != nil {
		return nil, fmt.Errorf("read scrape_configs: %w", err)
	}
	found := map[string]discovery.Configs{}
	for _, job := range jobs {
		found[job.JobName] = job.ServiceDiscoveryConfigs
	}
	if err := discoverer.ApplyConfig(found); err != nil {
		return nil, fmt.Errorf("configure discovery: %w", err)
	}
	go func() { _ = discoverer.Run() }() // it ends with the context
	go func() { _ = scraper.Run(discoverer.SyncCh()) }()
	return scraper, nil
}

// judge begins to evaluate the rules.
func judge(ctx context.Context, cfg *config.Config, db *tsdb.DB, log *slog.Logger) (*rules.Manager, error) {
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: log, MaxSamples: maxSamples, Timeout: queryTimeout, EnableAtModifier: true, EnableNegativeOffset: true,
	})
	manager := rules.NewManager(&rules.ManagerOptions{
		Context: ctx, Logger: log, Appendable: db, Queryable: db, QueryFunc: rules.EngineQueryFunc(engine, db),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, // nobody is told: the API is asked
	})
	var files []string
	for _, pattern := range cfg.RuleFiles {
		matching, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("look for rule_files %s: %w", pattern, err)
		}
		files = append(files, matching...)
	}
	if err := manager.Update(time.Duration(cfg.GlobalConfig.EvaluationInterval), files, labels.EmptyLabels(), "", nil); err != nil {
		return nil, fmt.Errorf("load rules: %w", err)
	}
	go manager.Run()
	return manager, nil
}

// serve answers until the context ends.
func serve(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{
		Addr: address, Handler: handler, ReadHeaderTimeout: queryTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the API: %w", err)
	}
	return nil
}
