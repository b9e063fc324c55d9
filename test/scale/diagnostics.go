package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/common/expfmt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/process"
)

// diagnosticsArgs let a manager serve what it knows of itself as it is shipped: with TLS, and to whoever may see it. Only so does it serve profiles.
var diagnosticsArgs = []string{"--insecure-diagnostics=false"}

// diagnostics asks managers about themselves.
type diagnostics struct {
	client *http.Client
	token  string
}

// newDiagnostics makes an account that may ask.
func newDiagnostics(ctx context.Context, hub client.Client) (*diagnostics, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "scale"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := create(ctx, hub, obj); err != nil {
			return nil, err
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := hub.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("cannot create a token for the diagnostics: %w", err)
	}
	return &diagnostics{
		token:  request.Status.Token,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, // it signs its certificate itself
	}, nil
}

// get asks a manager.
func (d *diagnostics) get(ctx context.Context, p *process.Process, path string) (io.ReadCloser, error) {
	url := strings.TrimSuffix(strings.Replace(p.MetricsURL, "http://", "https://", 1), "/metrics") + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %s: %w", p.Name, err)
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	response, err := d.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %s: %w", p.Name, err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s answers %s to %s", p.Name, response.Status, path)
	}
	return response.Body, nil
}

// heap makes a manager collect its garbage and writes a profile of what remains.
func (d *diagnostics) heap(ctx context.Context, p *process.Process, path string) error {
	profile, err := d.get(ctx, p, "/debug/pprof/heap?gc=1")
	if err != nil {
		return err
	}
	defer profile.Close()
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot write a profile: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(file, profile); err != nil {
		return fmt.Errorf("cannot write a profile: %w", err)
	}
	return nil
}

// gauges reads metrics that have one value each.
func (d *diagnostics) gauges(ctx context.Context, p *process.Process, names ...string) (map[string]float64, error) {
	body, err := d.get(ctx, p, "/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics of %s: %w", p.Name, err)
	}
	values := map[string]float64{}
	for _, name := range names {
		metrics := families[name].GetMetric()
		if len(metrics) != 1 || metrics[0].GetGauge() == nil {
			return nil, fmt.Errorf("%s has no metric %s", p.Name, name)
		}
		values[name] = metrics[0].GetGauge().GetValue()
	}
	return values, nil
}

const (
	goroutinesMetric = "go_goroutines"
	heapMetric       = "go_memstats_heap_alloc_bytes"
)

// lookAtManagers adds what the managers have used: first their memory as it is, then what remains of the heap after a collection.
func (s *scale) lookAtManagers(ctx context.Context, into map[string]*managerReport) error {
	s.looks++
	used, err := s.usage()
	if err != nil {
		return err
	}
	for _, name := range managers {
		r, p := into[name], s.lab.Env.Manager(name)
		r.MemoryMiB, r.PeakMiB, r.CPUSeconds = mebibytes(used[name].Memory), mebibytes(used[name].PeakMemory), seconds(used[name].CPU)
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
		if err != nil {
			return fmt.Errorf("cannot count the files of %s: %w", name, err)
		}
		r.Files = len(files)
		if err := s.diagnostics.heap(ctx, p, filepath.Join(s.lab.Dir(), fmt.Sprintf("heap-%s-%d.pprof", name, s.looks))); err != nil {
			return err
		}
		values, err := s.diagnostics.gauges(ctx, p, goroutinesMetric, heapMetric)
		if err != nil {
			return err
		}
		r.Goroutines, r.HeapMiB = int(values[goroutinesMetric]), mebibytes(int64(values[heapMetric]))
	}
	return nil
}
