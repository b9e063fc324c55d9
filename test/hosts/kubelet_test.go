package hosts

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
)

const uuidLabel = "metal3.io/uuid"

// kubeletEnvironment and dropIn return files of an Ignition override.
func kubeletEnvironment(text string) map[string]File {
	return map[string]File{kubeletEnvironmentFile: {Contents: text}}
}

func dropIn(id string) File {
	return File{Contents: "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nproviderID: " + id + "\n"}
}

var nodeIdentityCases = map[string]struct {
	instruction Instruction
	cluster     Cluster
	files       map[string]File
	wantName    string
	wantID      string
	wantLabel   bool
	wantError   string
}{
	"worker of any release takes custom labels": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.14.0"},
		files: kubeletEnvironment("CUSTOM_KUBELET_LABELS='metal3.io/uuid=u1,a=b'"), wantLabel: true,
	},
	"control plane before 4.19 ignores custom labels": {
		instruction: Instruction{Role: models.HostRoleMaster}, cluster: Cluster{Version: "4.18.30"},
		files: kubeletEnvironment("CUSTOM_KUBELET_LABELS=metal3.io/uuid=u1"),
	},
	"control plane from 4.19 on takes custom labels": {
		instruction: Instruction{Role: models.HostRoleMaster}, cluster: Cluster{Version: "4.19.0"},
		files: kubeletEnvironment("CUSTOM_KUBELET_LABELS=metal3.io/uuid=u1"), wantLabel: true,
	},
	"control plane of an OKD 4.19 prerelease takes custom labels": {
		instruction: Instruction{Role: models.HostRoleMaster}, cluster: Cluster{Version: "4.19.0-okd-scos.5"},
		files: kubeletEnvironment("CUSTOM_KUBELET_LABELS=metal3.io/uuid=u1"), wantLabel: true,
	},
	"node name of the environment wins over the hostname": {
		instruction: Instruction{Role: models.HostRoleWorker, Hostname: "w0"}, cluster: Cluster{Version: "4.19.0"},
		files: kubeletEnvironment("KUBELET_NODE_NAME=node-7"), wantName: "node-7",
	},
	"hostname of the instruction wins over the inventory": {
		instruction: Instruction{Role: models.HostRoleWorker, Hostname: "w0"}, cluster: Cluster{Version: "4.19.0"}, wantName: "w0",
	},
	"platform baremetal has no --provider-id": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.19.0"},
		files: kubeletEnvironment("KUBELET_PROVIDERID=metal3://x"),
	},
	"platform none has --provider-id": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.19.0", PlatformNone: true},
		files: kubeletEnvironment("KUBELET_PROVIDERID=metal3://x"), wantID: "metal3://x",
	},
	"single node has --provider-id": {
		instruction: Instruction{Role: models.HostRoleMaster, SingleNode: true}, cluster: Cluster{Version: "4.19.0"},
		files: kubeletEnvironment("KUBELET_PROVIDERID=metal3://x"), wantID: "metal3://x",
	},
	"drop-ins are ignored where the release has none": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.20.0", ControlPlaneDropIns: true},
		files: map[string]File{kubeletDropInDir + "/10.conf": dropIn("metal3://x")},
	},
	"drop-ins are merged in lexical order, other files left out": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.21.0", WorkerDropIns: true},
		files: map[string]File{
			kubeletDropInDir + "/20-b.conf": dropIn("metal3://last"), kubeletDropInDir + "/10-a.conf": dropIn("metal3://first"),
			kubeletDropInDir + "/30.yaml": dropIn("metal3://yaml"), kubeletDropInDir + "/sub/40.conf": dropIn("metal3://sub"),
		},
		wantID: "metal3://last",
	},
	"drop-in of another kind stops the kubelet": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.21.0", WorkerDropIns: true},
		files: map[string]File{kubeletDropInDir + "/10.conf": {Contents: "providerID: x"}}, wantError: "no KubeletConfiguration",
	},
	"an invalid label stops the kubelet": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.19.0"},
		files: kubeletEnvironment("CUSTOM_KUBELET_LABELS=a=$(id)"), wantError: "not valid",
	},
	"a reserved label stops the kubelet": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.19.0"},
		files: kubeletEnvironment("CUSTOM_KUBELET_LABELS=kubernetes.io/x=y"), wantError: "reserved",
	},
	"a bad node name stops the kubelet": {
		instruction: Instruction{Role: models.HostRoleWorker}, cluster: Cluster{Version: "4.19.0"},
		files: kubeletEnvironment("KUBELET_NODE_NAME=Node_7"), wantError: "not valid",
	},
}

func TestNodeIdentity(t *testing.T) {
	for name, tc := range nodeIdentityCases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			node, err := newNodeIdentity(tc.instruction, NewHardware("lab/m0"), tc.cluster, &Ignition{Files: tc.files})
			if tc.wantError != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wantError)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if tc.wantName == "" {
				tc.wantName = "m0"
			}
			g.Expect(node.name).To(Equal(tc.wantName))
			g.Expect(node.providerID).To(Equal(tc.wantID))
			if tc.wantLabel {
				g.Expect(node.labels).To(HaveKeyWithValue(uuidLabel, "u1"))
			} else {
				g.Expect(node.labels).NotTo(HaveKey(uuidLabel))
			}
		})
	}
}

func TestNodeRoles(t *testing.T) {
	control := Instruction{Role: models.HostRoleMaster}
	taint := []corev1.Taint{{Key: masterLabel, Effect: corev1.TaintEffectNoSchedule}}
	for name, tc := range map[string]struct {
		instruction Instruction
		cluster     Cluster
		wantRoles   []string
		wantTaints  []corev1.Taint
	}{
		"worker":           {Instruction{Role: models.HostRoleWorker}, Cluster{}, []string{workerLabel}, nil},
		"dedicated master": {control, Cluster{}, []string{controlPlaneLabel, masterLabel}, taint},
		"compact":          {control, Cluster{SchedulableControlPlane: true}, []string{controlPlaneLabel, masterLabel, workerLabel}, nil},
		"single node":      {Instruction{SingleNode: true}, Cluster{}, []string{controlPlaneLabel, masterLabel, workerLabel}, nil},
		"arbiter": {
			Instruction{Role: models.HostRoleArbiter},
			Cluster{SchedulableControlPlane: true},
			[]string{arbiterLabel},
			append(slices.Clone(taint), corev1.Taint{Key: arbiterLabel, Effect: corev1.TaintEffectNoSchedule}),
		},
		"worker of single node": {
			Instruction{Role: models.HostRoleWorker, SingleNode: false, DayTwo: true},
			Cluster{},
			[]string{workerLabel},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.cluster.Version = "4.19.0"
			node, err := newNodeIdentity(tc.instruction, NewHardware("m0"), tc.cluster, &Ignition{})
			g.Expect(err).NotTo(HaveOccurred())
			var roles []string
			for _, label := range []string{controlPlaneLabel, masterLabel, arbiterLabel, workerLabel} {
				if _, ok := node.labels[label]; ok {
					roles = append(roles, label)
				}
			}
			g.Expect(roles).To(Equal(tc.wantRoles))
			g.Expect(node.taints).To(Equal(tc.wantTaints))
		})
	}
}

func TestReleaseTag(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/openshift-release-dev/ocp-release:4.19.3-x86_64":     "4.19.3",
		"quay.io/openshift-release-dev/ocp-release:4.20.0-rc.1-multi": "4.20.0-rc.1",
		"quay.io/okd/scos-release:4.19.0-okd-scos.5":                  "4.19.0-okd-scos.5",
		"registry.lab:5000/release:latest":                            "",
		"registry.lab:5000/release":                                   "",
	} {
		got := ""
		if match := releaseTag.FindStringSubmatch(image); match != nil {
			got = match[1]
		}
		NewWithT(t).Expect(got).To(Equal(want), image)
	}
}
