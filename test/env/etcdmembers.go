package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
)

// memberCRDs are the additional kinds of a cluster whose etcd has members.
var memberCRDs = []string{"operator/v1/zz_generated.crd-manifests/0000_12_etcd_01_etcds-Default.crd.yaml"}

// egress makes a kube-apiserver connect to Nodes through a proxy, because their addresses exist only in the
// network of the simulated hosts.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: "%s"}}
`

// UseMembers gives the cluster its own etcd, with a member on each control-plane Node, instead of the shared
// one. Call it before the first Start, which runs the bootstrap's member. The simulated hosts and the etcd
// operator start the other members.
func (w *WorkloadCluster) UseMembers(ctx context.Context) (*members.Cluster, error) {
	if w.light != nil {
		return nil, errors.New("an API server in this process does not use etcd")
	}
	program, err := w.env.components.Program(ctx, components.Etcd)
	if err != nil {
		return nil, err
	}
	etcd, err := members.New(ctx, members.Options{Name: w.Name, Group: w.env.group, Program: program, Kubernetes: w.api.ca})
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the etcd of %s: %w", w.Name, err)
	}
	certificate, key, err := w.api.ca.Client("kube-apiserver-kubelet-client")
	if err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(w.api.folder, name) }
	for name, content := range map[string][]byte{
		"egress.yaml": fmt.Appendf(nil, egress, etcd.Network().Socket()), "kubelet-client.crt": certificate, "kubelet-client.key": key,
	} {
		if err := os.WriteFile(file(name), content, 0o600); err != nil {
			return nil, fmt.Errorf("cannot prepare the kube-apiserver of %s: %w", w.Name, err)
		}
	}
	w.api.etcd = etcd.ServerFlags()
	w.Args = append(w.Args,
		"--egress-selector-config-file="+file("egress.yaml"),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority="+file("ca.crt"),
		"--kubelet-client-certificate="+file("kubelet-client.crt"), "--kubelet-client-key="+file("kubelet-client.key"),
	)
	w.members = etcd
	return etcd, nil
}

// Members returns the cluster's own etcd, or nil.
func (w *WorkloadCluster) Members() *members.Cluster { return w.members }
