package status

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Each row is a state of the API servers. Machines and their kubelets do not matter.
func TestReportedKubernetesVersion(t *testing.T) {
	type state = workload.State
	for situation, c := range map[string]struct {
		given, last string
		workload    state
		installed   bool
		machines    []string
		reported    string
	}{
		"not installed, nothing given": {},
		"not installed":                {given: "v1.32.5", reported: "v1.32.5"},
		"not installed, without v":     {given: "1.32.5", reported: "v1.32.5"},
		"not installed, given and removed": {
			last: "v1.32.5",
		},
		"installed": {
			installed: true, workload: state{Connected: true, OpenShiftVersion: "4.19.3", KubernetesVersion: "v1.32.6", APIServersVersion: "1.32.6"},
			reported: "v1.32.6",
		},
		"another version is given": {
			installed: true, given: "v1.33.5", last: "v1.32.6",
			workload: state{Connected: true, OpenShiftVersion: "4.19.3", KubernetesVersion: "v1.32.6", APIServersVersion: "1.32.6"},
			reported: "v1.32.6",
		},
		"with the hash of API servers": {
			installed: true, given: "v1.29.6", workload: state{
				Connected: true, OpenShiftVersion: "4.16.2", KubernetesVersion: "v1.29.6+aba1e8d", APIServersVersion: "1.29.6",
			},
			reported: "v1.29.6+aba1e8d",
		},
		"the first API server was updated": {
			installed: true, last: "v1.32.6", workload: state{
				Connected: true, OpenShiftVersion: "4.19.3", Upgrading: "4.20.8", KubernetesVersion: "v1.33.5", APIServersVersion: "1.32.6",
			},
			reported: "v1.32.6",
		},
		"all API servers were updated, no kubelet": {
			installed: true, last: "v1.32.6", workload: state{
				Connected: true, OpenShiftVersion: "4.19.3", Upgrading: "4.20.8", KubernetesVersion: "v1.33.5", APIServersVersion: "1.33.5",
			},
			machines: []string{"v1.32.6"}, reported: "v1.33.5",
		},
		"all API servers were updated, the last answer is older": {
			installed: true, last: "v1.32.6", workload: state{
				Connected: true, OpenShiftVersion: "4.19.3", Upgrading: "4.20.8", KubernetesVersion: "v1.32.6", APIServersVersion: "1.33.5",
			},
			reported: "v1.33.5",
		},
		"all API servers were updated, a kubelet has the hash": {
			installed: true, last: "v1.28.9+2f7b992", workload: state{
				Connected: true, OpenShiftVersion: "4.15.12", Upgrading: "4.16.2", KubernetesVersion: "v1.28.9+2f7b992", APIServersVersion: "1.29.6",
				Nodes: []workload.Node{
					{ControlPlane: true, KubeletVersion: "v1.28.9+2f7b992"}, {ControlPlane: true, KubeletVersion: "v1.29.6+aba1e8d"},
				},
			},
			reported: "v1.29.6+aba1e8d",
		},
		"the operator reports a wrong version": {
			installed: true, workload: state{
				Connected: true, OpenShiftVersion: "4.17.30", KubernetesVersion: "v1.30.12", APIServersVersion: "1.30.5",
				Nodes: []workload.Node{{KubeletVersion: "v1.30.12"}, {ControlPlane: true, KubeletVersion: "v1.30.12"}},
			},
			reported: "v1.30.12",
		},
		"the operator reports no version": {
			installed: true, workload: state{Connected: true, OpenShiftVersion: "4.19.3", KubernetesVersion: "v1.32.6"}, reported: "v1.32.6",
		},
		"the operator reports no version, upgrade": {
			installed: true, last: "v1.32.6", workload: state{
				Connected: true, OpenShiftVersion: "4.19.3", Upgrading: "4.20.8", KubernetesVersion: "v1.33.5",
			},
			reported: "v1.32.6",
		},
		"another release with the same version": {
			installed: true, last: "v1.35.6", workload: state{
				Connected: true, OpenShiftVersion: "4.22.7", Upgrading: "4.22.11", KubernetesVersion: "v1.35.6", APIServersVersion: "1.35.6",
			},
			reported: "v1.35.6",
		},
		"a version that is none": {
			installed: true, last: "v1.32.6", workload: state{Connected: true, OpenShiftVersion: "4.19.3", KubernetesVersion: "latest"},
			reported: "v1.32.6",
		},
		"the cluster does not answer": {installed: true, given: "v1.33.5", last: "v1.32.6", reported: "v1.32.6"},
		"moved, the cluster does not answer": {
			installed: true, given: "v1.33.5", machines: []string{"v1.33.5", "v1.32.6", "", "garbage"}, reported: "v1.32.6",
		},
		"moved, Machines without version": {installed: true, given: "v1.33.5", machines: []string{""}},
	} {
		t.Run(situation, func(t *testing.T) {
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Spec.Version, cp.Status.Version = c.given, c.last
				if c.installed {
					cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
				}
			})
			f.Workload = c.workload
			installationstate.Decide(f)
			for _, version := range c.machines {
				f.Machines = append(f.Machines, &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: version}})
			}
			v := viewOf(f)
			status := controlplanev1.OpenshiftAssistedControlPlaneStatus{Version: c.last}
			v.composeNumbers(&status)
			g := NewWithT(t)
			g.Expect(status.Version).To(Equal(c.reported))
			if c.reported == "" {
				g.Expect(status.Versions).To(BeNil())
				return
			}
			g.Expect(status.Versions).To(Equal([]controlplanev1.StatusVersion{{
				Version: c.reported, Replicas: ptr.To(int32(len(c.machines))),
			}}))
		})
	}
}
