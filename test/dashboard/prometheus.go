package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// scrapeInterval is short, because installations in the laboratory are.
const scrapeInterval = 2 * time.Second

// observe runs kube-state-metrics and Prometheus together with the managers, and returns the address of Prometheus.
func observe(ctx context.Context, l *lab.Lab) (string, error) {
	state, err := startStateMetrics(ctx, l)
	if err != nil {
		return "", err
	}
	program, err := components.Prometheus()
	if err != nil {
		return "", err
	}
	config := filepath.Join(l.Dir(), "prometheus.yaml")
	if err := os.WriteFile(config, []byte(scrapes(l, state)), 0o644); err != nil {
		return "", fmt.Errorf("cannot configure Prometheus: %w", err)
	}
	port, err := l.Env.Group().Port()
	if err != nil {
		return "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	prometheus := l.Env.Group().New("prometheus", process.Clients, program, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(l.Dir(), "prometheus"), "--web.listen-address="+address)
	prometheus.Ready = process.Probe(http.DefaultClient, "http://"+address+"/-/ready")
	return "http://" + address, l.Env.Group().Start(ctx, prometheus)
}

// startStateMetrics runs kube-state-metrics for our kinds alone, and returns its address.
func startStateMetrics(ctx context.Context, l *lab.Lab) (string, error) {
	builder := l.Env.Components()
	program, err := builder.Program(ctx, components.StateMetrics)
	if err != nil {
		return "", err
	}
	var ports [2]int
	for i := range ports {
		if ports[i], err = l.Env.Group().Port(); err != nil {
			return "", err
		}
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	state := l.Env.Group().New("kube-state-metrics", process.Clients, program, "--kubeconfig="+l.Env.Kubeconfig(),
		"--host=127.0.0.1", fmt.Sprintf("--port=%d", ports[0]),
		"--telemetry-host=127.0.0.1", fmt.Sprintf("--telemetry-port=%d", ports[1]), "--custom-resource-state-only",
		"--custom-resource-state-config-file="+filepath.Join(builder.Root(), "config", "monitoring", "kube-state-metrics.yaml"))
	state.Ready = process.Probe(http.DefaultClient, "http://"+address+"/healthz")
	return address, l.Env.Group().Start(ctx, state)
}

// scrapes is the configuration of Prometheus, with the labels that the PodMonitors of config/monitoring give.
func scrapes(l *lab.Lab, state string) string {
	lines := []string{fmt.Sprintf("global: {scrape_interval: %s, scrape_timeout: %s}", scrapeInterval, scrapeInterval), "scrape_configs:"}
	target := func(job, address, namespace string) {
		lines = append(lines, fmt.Sprintf("- {job_name: %s, honor_labels: true, static_configs: [{targets: [%q], labels: "+
			"{namespace: %s, pod: %s-0}}]}", job, address, namespace, job))
	}
	for manager, job := range map[string]string{
		env.Bootstrap:    "bootstrap-openshift-agent",
		env.ControlPlane: "control-plane-openshift-agent",
	} {
		address := strings.TrimSuffix(strings.TrimPrefix(l.Env.Manager(manager).MetricsURL, "http://"), "/metrics")
		target(job, address, "openshift-agent-"+strings.TrimSuffix(job, "-openshift-agent")+"-system")
	}
	target("kube-state-metrics", state, "monitoring")
	return strings.Join(lines, "\n")
}
