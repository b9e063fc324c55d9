package config_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workers are a MachineDeployment of our provider and a MachineSet, which the tests change. The Cluster does
// not exist, so that Cluster API does not reconcile them.
const workers = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {namespace: default, generateName: workers-}
spec:
  clusterName: none
  replicas: 2
  template:
    spec:
      clusterName: none
      version: v1.32.7
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: OpenshiftAssistedConfigTemplate, name: one}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: one}
`

// edit is a change of such an object. The patches before and status are applied first.
type edit struct {
	kind    string
	before  string
	status  string
	version string // of the request: v1beta2
	scale   bool   // the change is one of the subresource
	change  string
	refused string
}

const (
	onDelete = `rollout: {strategy: {type: OnDelete}}`
	rolling  = `rollout: {strategy: {type: RollingUpdate}}`
	settled  = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 2}`
	// current is the status that Cluster API 1.12 to 1.14 reports. The conversion to v1beta1 and back adds the deprecated fields.
	current     = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 2, deprecated: {v1beta1: {updatedReplicas: 2}}}`
	otherConfig = `spec: {template: {spec: {bootstrap: {configRef: {name: two}}}}}`
	half        = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 1}`
	// lagging is the status right after a change of the template, when Cluster API has reconciled the MachineDeployment, but
	// neither its MachineSets nor its Machines. partlyMoved is the status a moment later.
	lagging     = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 2, deprecated: {v1beta1: {updatedReplicas: 0}}}`
	partlyMoved = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 2, versions: [{version: v1.32.8, replicas: 2}], ` +
		`deprecated: {v1beta1: {updatedReplicas: 1}}}`
	// upgraded is the status when OpenShift has updated all hosts, and the version of the MachineDeployment is the former one.
	// requested is the status when the MachineDeployment got the version, and partial when one Machine was moved to its new
	// MachineSet. Before 1.14 Cluster API reports no versions.
	upgraded = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 0, versions: [{version: v1.32.8, replicas: 2}], ` +
		`deprecated: {v1beta1: {updatedReplicas: 2}}}`
	requested = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 0, versions: [{version: v1.32.8, replicas: 2}], ` +
		`deprecated: {v1beta1: {updatedReplicas: 0}}}`
	partial = `{observedGeneration: 1, replicas: 2, upToDateReplicas: 1, versions: [{version: v1.32.8, replicas: 2}], ` +
		`deprecated: {v1beta1: {updatedReplicas: 1}}}`
	// byTurns updates one Machine after the other. permitted and inPlace permit an in-place update, begun
	// requests one, and back reverts the request.
	byTurns   = `spec: {rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}}`
	permitted = `
metadata: {annotations: {bootstrap.cluster.x-k8s.io/update-in-place: v1.32.8}}
spec:
`
	inPlace = permitted + `  template: {spec: {version: v1.32.8}}
`
	begun = inPlace + `  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`
	back  = `
metadata: {annotations: {bootstrap.cluster.x-k8s.io/update-in-place: v1.32.7}}
spec:
  template: {spec: {version: v1.32.7}}
`
	// The owner does not exist: the finalizer blocks garbage collection.
	ownedSet = `
kind: MachineSet
metadata:
  finalizers: [example.com/kept]
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineDeployment, name: x, uid: x, controller: true}]
`
	// The labels that Cluster API sets on the MachineSet of a MachineDeployment remain when the
	// MachineDeployment is deleted with --cascade=orphan.
	orphanedSet = `
kind: MachineSet
spec:
  selector: {matchLabels: {machine-template-hash: abc}}
  template: {metadata: {labels: {machine-template-hash: abc}}}
metadata:
  labels: {cluster.x-k8s.io/deployment-name: workers}
`
	unlabeledSet = `
kind: MachineSet
spec:
  selector: {matchLabels: {machine-template-hash: abc}}
  template: {metadata: {labels: {machine-template-hash: abc}}}
`
	labeledSet = `
kind: MachineSet
metadata:
  labels: {cluster.x-k8s.io/deployment-name: workers}
`
	otherProvider = `spec: {template: {spec: {bootstrap: {configRef: {kind: KubeadmConfigTemplate}}}}}`
)

func checkReinstallation(ctx context.Context, t *testing.T, c client.Client) {
	awaitPolicy(ctx, t, c)
	for name, e := range map[string]edit{
		"another bootstrap template, like after a change of a topology": {
			change: otherConfig,
			refused: "changing spec.template.spec.bootstrap would wipe and reinstall all hosts of this MachineDeployment. Set " +
				"spec.rollout.strategy.type to OnDelete",
		},
		"data instead of a bootstrap template": {
			change:  `spec: {template: {spec: {bootstrap: {configRef: null, dataSecretName: data}}}}`,
			refused: "spec.template.spec.bootstrap would wipe",
		},
		"another infrastructure template": {
			change:  `spec: {template: {spec: {infrastructureRef: {name: two}}}}`,
			refused: "spec.template.spec.infrastructureRef would wipe",
		},
		"another version": {
			change:  `spec: {template: {spec: {version: v1.32.8}}}`,
			refused: "spec.template.spec.version would wipe",
		},
		"version removed": {
			change:  `spec: {template: {spec: {version: null}}}`,
			refused: "spec.template.spec.version would wipe",
		},
		"a failure domain": {
			change:  `spec: {template: {spec: {failureDomain: rack1}}}`,
			refused: "spec.template.spec.failureDomain would wipe",
		},
		"two fields at once": {
			change:  `spec: {template: {spec: {version: v1.32.8, failureDomain: rack1}}}`,
			refused: "spec.template.spec.version, spec.template.spec.failureDomain would wipe",
		},
		"in API version v1beta1": {
			version: "v1beta1",
			change:  otherConfig,
			refused: "spec.template.spec.bootstrap would wipe",
		},
		"a restart by clusterctl": {
			change:  `spec: {rollout: {after: "2026-01-01T00:00:00Z"}}`,
			refused: "with this spec.rollout.after the hosts would be wiped",
		},
		"a restart, withdrawn": {
			before: `spec: {rollout: {after: "2099-01-01T00:00:00Z"}}`,
			change: `spec: {rollout: null}`,
		},
		"a restart, earlier": {
			before:  `spec: {rollout: {after: "2099-01-01T00:00:00Z"}}`,
			change:  `spec: {rollout: {after: "2027-01-01T00:00:00Z"}}`,
			refused: "with this spec.rollout.after",
		},
		"an earlier restart, unchanged": {
			before: `spec: {rollout: {after: "2099-01-01T00:00:00Z"}}`,
			change: `spec: {replicas: 3}`,
		},

		"fields that Cluster API changes in place": {
			change: `
metadata: {labels: {a: b}, annotations: {a: b}}
spec:
  machineNaming: {template: "{{ .machineSet.name }}-host-{{ .random }}"}
  deletion: {order: Oldest}
  remediation: {maxInFlight: 1}
  template:
    metadata: {labels: {a: b}, annotations: {a: b}}
    spec: {minReadySeconds: 5, readinessGates: [{conditionType: Examined}], deletion: {nodeDrainTimeoutSeconds: 9}}`,
		},
		"the parameters of the rollout": {change: `spec: {rollout: {strategy: {type: RollingUpdate, rollingUpdate: ` +
			`{maxSurge: 0, maxUnavailable: 1}}}}`},
		"more replicas":                    {change: `spec: {replicas: 3}`},
		"more replicas, as kubectl scales": {scale: true, change: `spec: {replicas: 3}`},
		"in API version v1beta1, in place": {
			version: "v1beta1",
			change:  `spec: {replicas: 3, template: {spec: {nodeDrainTimeout: 9s}}}`,
		},

		"under OnDelete":         {before: `spec: {` + onDelete + `}`, change: otherConfig},
		"together with OnDelete": {change: `spec: {` + onDelete + `, template: {spec: {version: v1.32.8}}}`},
		"a restart under OnDelete": {
			before: `spec: {` + onDelete + `}`,
			change: `spec: {rollout: {after: "2026-01-01T00:00:00Z"}}`,
		},
		"more replicas under OnDelete, outdated":  {before: `spec: {` + onDelete + `}`, scale: true, change: `spec: {replicas: 3}`},
		"OnDelete left, everything is up to date": {before: `spec: {` + onDelete + `}`, status: settled, change: `spec: {` + rolling + `}`},
		"OnDelete left, in API version v1beta1": {
			before: `spec: {` + onDelete + `}`, status: current, version: "v1beta1",
			change: `spec: {strategy: {type: RollingUpdate}}`,
		},
		"OnDelete left with an outdated Machine": {
			before: `spec: {` + onDelete + `}`,
			status: `{observedGeneration: 1, replicas: 2, upToDateReplicas: 1}`, change: `spec: {` + rolling + `}`, refused: "keep OnDelete",
		},
		"OnDelete left before the status is current": {
			before: `spec: {` + onDelete + `}`, status: `{replicas: 2, upToDateReplicas: 2}`,
			change: `spec: {` + rolling + `}`, refused: "keep OnDelete",
		},
		"OnDelete left before the MachineSets are current": {
			before: `spec: {` + onDelete + `}`, status: lagging, change: `spec: {` + rolling + `}`, refused: "keep OnDelete",
		},
		"OnDelete left when all Machines are in the newest MachineSet": {
			before: `spec: {` + onDelete + `}`, status: current, change: `spec: {` + rolling + `}`,
		},
		"OnDelete left together with a change": {
			before: `spec: {` + onDelete + `}`, status: settled,
			change: `spec: {` + rolling + `, template: {spec: {version: v1.32.8}}}`, refused: "would wipe",
		},
		"OnDelete left with a restart in days": {
			before: `spec: {rollout: {strategy: {type: OnDelete}, after: "2099-01-01T00:00:00Z"}}`,
			status: settled, change: `spec: {` + rolling + `}`, refused: "with this spec.rollout.after",
		},
		"OnDelete left, and the restart withdrawn": {
			before: `spec: {rollout: {strategy: {type: OnDelete}, after: "2099-01-01T00:00:00Z"}}`,
			status: settled, change: `spec: {rollout: {strategy: {type: RollingUpdate}, after: null}}`,
		},
		"consent together with a change": {change: `{metadata: {annotations: ` +
			`{bootstrap.cluster.x-k8s.io/reinstall-hosts: when-the-template-changes}}, ` + otherConfig + `}`},
		"consent before the change": {
			before: `metadata: {annotations: {bootstrap.cluster.x-k8s.io/reinstall-hosts: when-the-template-changes}}`,
			change: `spec: {rollout: {after: "2026-01-01T00:00:00Z"}}`,
		},
		"wrong value of the consent": {
			change:  `{metadata: {annotations: {bootstrap.cluster.x-k8s.io/reinstall-hosts: "no"}}, ` + otherConfig + `}`,
			refused: "set the annotation bootstrap.cluster.x-k8s.io/reinstall-hosts: when-the-template-changes",
		},
		"consent withdrawn together with a change": {
			before:  `metadata: {annotations: {bootstrap.cluster.x-k8s.io/reinstall-hosts: when-the-template-changes}}`,
			change:  `{metadata: {annotations: null}, ` + otherConfig + `}`,
			refused: "would wipe",
		},

		"another version, updated in place": {before: byTurns, status: settled, change: inPlace},
		"more than the version, updated in place": {
			before: byTurns, status: settled,
			change:  permitted + `  template: {spec: {version: v1.32.8, failureDomain: rack1}}`,
			refused: "spec.template.spec.failureDomain would wipe",
		},
		"another template, updated in place": {
			before: byTurns, status: settled,
			change:  permitted + `  template: {spec: {version: v1.32.8, bootstrap: {configRef: {name: two}}}}`,
			refused: "spec.template.spec.bootstrap would wipe",
		},
		"a restart, updated in place": {
			before: byTurns, status: settled,
			change: inPlace + `  rollout: {after: "2026-01-01T00:00:00Z"}`, refused: "with this spec.rollout.after",
		},
		"version removed, updated in place": {
			before: byTurns, status: settled,
			change: permitted + `  template: {spec: {version: null}}`, refused: "spec.template.spec.version would wipe",
		},
		"in place, but not to the permitted version": {
			before: byTurns, status: settled,
			change: permitted + `  template: {spec: {version: v1.32.9}}`, refused: "spec.template.spec.version would wipe",
		},
		"in place, permission for the previous version": {
			before: begun, status: settled,
			change: `spec: {template: {spec: {version: v1.32.9}}}`, refused: "spec.template.spec.version would wipe",
		},
		"updated in place, with a host more": {
			before: byTurns, status: settled,
			change: inPlace + `  rollout: {strategy: {rollingUpdate: {maxSurge: 1}}}`, refused: "maxSurge to 0",
		},
		"updated in place, with a percentage of the hosts": {
			before: byTurns, status: settled,
			change: inPlace + `  rollout: {strategy: {rollingUpdate: {maxSurge: 50%}}}`, refused: "maxSurge to 0",
		},
		"updated in place, default rollout": {status: settled, change: inPlace, refused: "maxSurge to 0"},
		"updated in place, status unknown": {
			before: byTurns, change: inPlace,
			refused: "being updated in place to another version",
		},
		"updated in place during another update": {
			before: byTurns, status: half, change: inPlace,
			refused: "being updated in place to another version",
		},
		"updated in place, reverted before the first update": {
			before: begun,
			status: `{observedGeneration: 1, replicas: 2, upToDateReplicas: 0}`, change: back,
		},
		"updated in place, reverted after some updates": {
			before: begun, status: half, change: back,
			refused: "being updated in place to another version",
		},
		"updated in place, reverted before the MachineSets are current": {
			before: begun, status: partlyMoved, change: back, refused: "being updated in place to another version",
		},
		"permission withdrawn before the MachineSets are current": {
			before: begun, status: lagging, change: `metadata: {annotations: null}`,
			refused: "keep the annotation until all Machines are up to date",
		},
		"permission withdrawn during the update": {
			before: begun, status: half, change: `metadata: {annotations: null}`,
			refused: "keep the annotation until all Machines are up to date",
		},
		"permission withdrawn, status unknown": {
			before: begun, change: `metadata: {annotations: null}`,
			refused: "keep the annotation until all Machines are up to date",
		},
		"permission withdrawn after the update": {before: begun, status: settled, change: `metadata: {annotations: null}`},
		"permission withdrawn for OnDelete during the update": {
			before: begun, status: half,
			change: `{metadata: {annotations: null}, spec: {` + onDelete + `}}`,
		},
		"more hosts while some are updated in place": {
			before: begun, status: half,
			change: `spec: {rollout: {strategy: {rollingUpdate: {maxSurge: 1}}}}`, refused: "maxSurge to 0",
		},
		"more replicas while some are updated in place": {before: begun, status: half, change: `spec: {replicas: 3}`},
		"OnDelete left for updates in place": {
			before: `spec: {` + onDelete + `}`, status: half,
			change:  inPlace + `  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`,
			refused: "keep OnDelete",
		},

		"updated in place when the kubelets have the version": {before: byTurns, status: upgraded, change: inPlace},
		"reverted before a Machine was moved":                 {before: begun, status: requested, change: back},
		"reverted after one Machine was moved": {
			before: begun, status: partial, change: back, refused: "hosts are being updated in place to another version",
		},
		"OnDelete with the version of the kubelets": {
			before: byTurns, status: upgraded,
			change: `spec: {` + onDelete + `, template: {spec: {version: v1.32.8}}}`,
		},
		"OnDelete without version": {
			before: `spec: {` + onDelete + `}`, status: upgraded, change: `spec: {template: {spec: {version: null}}}`,
		},
		"OnDelete is left while kubelets have another version": {
			before: `spec: {` + onDelete + `}`, status: upgraded, change: `spec: {` + rolling + `}`, refused: "keep OnDelete",
		},
		"permission withdrawn while kubelets have another version": {
			before: begun, status: upgraded,
			change: `metadata: {annotations: null}`, refused: "keep the annotation until all Machines are up to date",
		},

		"no Machines": {
			before: `spec: {replicas: 0}`, status: `{observedGeneration: 1, replicas: 0}`,
			change: otherConfig,
		},
		"no Machines wanted, some are left": {
			before: `spec: {replicas: 0}`, status: `{observedGeneration: 1, replicas: 1}`,
			change: otherConfig, refused: "would wipe",
		},
		"no Machines wanted, status unknown": {before: `spec: {replicas: 0}`, change: otherConfig, refused: "would wipe"},
		"scaled to zero with the change": {
			status: settled, change: `{spec: {replicas: 0, template: {spec: {version: v1.32.8}}}}`,
			refused: "would wipe",
		},
		"restored without status":           {change: otherConfig, refused: "would wipe"},
		"workers of another provider":       {before: otherProvider, change: otherConfig},
		"workers moved to another provider": {change: otherProvider, refused: "would wipe"},
		"a standalone MachineSet":           {kind: "MachineSet", change: otherConfig},
		"a MachineSet of a MachineDeployment": {
			before: ownedSet, change: otherConfig,
			refused: "the MachineDeployment would wipe and reinstall the hosts",
		},
		"an orphaned MachineSet": {
			before: orphanedSet, change: otherConfig,
			refused: "the MachineDeployment would wipe and reinstall the hosts",
		},
		"an orphaned MachineSet, in place": {before: orphanedSet, change: `spec: {replicas: 3}`},
		"an orphaned MachineSet loses a label": {
			before: orphanedSet, change: `{metadata: {labels: null}, ` + otherConfig + `}`,
			refused: "the MachineDeployment would wipe and reinstall the hosts",
		},
		"an orphaned MachineSet without labels": {
			before: unlabeledSet, change: otherConfig,
			refused: "create the MachineDeployment of this MachineSet",
		},
		"an orphaned MachineSet, by its label": {
			before: labeledSet, change: otherConfig,
			refused: "the MachineDeployment would wipe and reinstall the hosts",
		},
		"an orphaned MachineSet, with consent": {
			before: orphanedSet, change: `{metadata: {annotations: {bootstrap.cluster.x-k8s.io/reinstall-hosts: when-the-template-changes}}, ` +
				otherConfig + `}`,
		},
		"a MachineSet of a MachineDeployment, with consent on the MachineSet": {
			before: ownedSet, change: `{metadata: {annotations: {bootstrap.cluster.x-k8s.io/reinstall-hosts: when-the-template-changes}}, ` +
				otherConfig + `}`, refused: "change the MachineDeployment",
		},
		"a MachineSet of a MachineDeployment, in place": {
			before: ownedSet,
			change: `spec: {replicas: 3, template: {metadata: {labels: {a: b}}, spec: {minReadySeconds: 5}}}`,
		},
		"a MachineSet of a MachineDeployment, as kubectl scales":  {before: ownedSet, scale: true, change: `spec: {replicas: 3}`},
		"a MachineSet of a MachineDeployment of another provider": {before: ownedSet + otherProvider, change: otherConfig},
	} {
		t.Run(name, func(t *testing.T) {
			err := e.apply(ctx, t, c)
			if e.refused == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(And(Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring(e.refused))))
		})
	}
}

// apply creates the object and then changes it.
func (e edit) apply(ctx context.Context, t *testing.T, c client.Client) error {
	t.Helper()
	g := NewWithT(t)
	u := &unstructured.Unstructured{Object: merge(object(t, workers), object(t, e.before))}
	if e.kind != "" {
		u.SetKind(e.kind)
	}
	g.Expect(c.Create(ctx, u)).To(Succeed())
	if e.status != "" {
		// Cluster API adds an owner and a finalizer, so the status update needs the current object.
		g.Expect(c.Status().Patch(ctx, u, mergePatch(t, map[string]any{"status": object(t, e.status)}))).To(Succeed())
	}
	if e.version != "" {
		u.SetAPIVersion("cluster.x-k8s.io/" + e.version)
	}
	change := mergePatch(t, object(t, e.change))
	if e.scale {
		return c.SubResource("scale").Patch(ctx, u, change)
	}
	return c.Patch(ctx, u, change)
}

func mergePatch(t *testing.T, content map[string]any) client.Patch {
	t.Helper()
	data, err := json.Marshal(content)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return client.RawPatch(types.MergePatchType, data)
}

// awaitPolicy waits until the API server has compiled the policies, which takes some seconds.
func awaitPolicy(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	for _, probe := range []edit{{change: otherConfig}, {before: ownedSet, change: otherConfig}} {
		NewWithT(t).Eventually(func() error { return probe.apply(ctx, t, c) }, time.Minute, 200*time.Millisecond).ShouldNot(Succeed())
	}
}
