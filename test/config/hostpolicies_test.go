package config_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// newHost is a BareMetalHost as a user creates it.
const newHost = `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {namespace: default, generateName: rack-}
spec:
  online: true
  bootMACAddress: "52:54:00:00:00:01"
  bmc: {address: "redfish-virtualmedia://bmc.invalid/redfish/v1/Systems/1", credentialsName: bmc}
`

const (
	consumed = `spec: {consumerRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Machine, ` +
		`namespace: default, name: worker}}`
	withImage  = `spec: {image: {url: "http://images.invalid/rhcos.raw", checksum: "http://images.invalid/sums"}}`
	running    = consumed + "\n" + `status: {operationalStatus: OK, poweredOn: true, provisioning: {state: provisioned}}`
	underPause = `metadata: {annotations: {baremetalhost.metal3.io/paused: metal3.io/capm3}}`
	history    = `metadata: {annotations: {baremetalhost.metal3.io/status: ` +
		`'{"operationalStatus":"OK","provisioning":{"state":"provisioned","image":{"url":"http://images.invalid/rhcos.raw"}}}'}}`
	override = `metadata: {annotations: {bootstrap.cluster.x-k8s.io/allow-deletion: "true"}}`
)

// checkRestoredHosts creates BareMetalHosts as users, backups and other tools do. No Bare Metal Operator runs.
func checkRestoredHosts(ctx context.Context, t *testing.T, c client.Client) {
	awaitRefusal(t, func() error { return c.Create(ctx, hostOf(t, consumed)) })
	const wiped = "and no status: its server would be rebooted and its disk overwritten"
	for name, tc := range map[string]struct {
		host    []string
		refused string
	}{
		"a new server":                          {},
		"a restored host of a Machine":          {host: []string{consumed, withImage}, refused: "has spec.consumerRef, spec.image " + wiped},
		"restored before its image was written": {host: []string{consumed}, refused: "has spec.consumerRef " + wiped},
		"restored without its consumer":         {host: []string{withImage}, refused: "has spec.image " + wiped},
		"restored, of another installer": {
			host:    []string{`spec: {customDeploy: {method: install_coreos}}`},
			refused: "has spec.customDeploy " + wiped,
		},
		"restored, of another kind of consumer": {host: []string{`spec: {consumerRef: {kind: HostClaim, name: claim}}`}, refused: wiped},
		"moved by clusterctl":                   {host: []string{consumed, withImage, history, underPause}},
		"paused":                                {host: []string{consumed, withImage, underPause}},
		"restored with status":                  {host: []string{consumed, withImage, history}},
		"with an empty status": {host: []string{
			consumed, withImage,
			`metadata: {annotations: {baremetalhost.metal3.io/status: ""}}`,
		}, refused: wiped},
		"with a status without state": {host: []string{
			consumed, withImage,
			`metadata: {annotations: {baremetalhost.metal3.io/status: '{"provisioning":{"state":""}}'}}`,
		}, refused: wiped},
		"detached, which has no effect on a new host": {host: []string{
			consumed, withImage,
			`metadata: {annotations: {baremetalhost.metal3.io/detached: assisted-service-controller}}`,
		}, refused: wiped},
		"without inspection": {host: []string{
			consumed, withImage,
			`metadata: {annotations: {inspect.metal3.io: disabled}}`,
		}, refused: wiped},
		"a master of the hub": {host: []string{`spec: {externallyProvisioned: true, consumerRef: ` +
			`{apiVersion: machine.openshift.io/v1beta1, kind: Machine, namespace: openshift-machine-api, name: custom-master3}}`}},
		"provisioned without the operator": {host: []string{withImage, `spec: {externallyProvisioned: true}`}},
		"consent to wipe": {host: []string{
			withImage,
			`metadata: {annotations: {bootstrap.cluster.x-k8s.io/provision-new-host: wipe}}`,
		}},
		"wrong value of the consent": {
			host: []string{
				withImage,
				`metadata: {annotations: {bootstrap.cluster.x-k8s.io/provision-new-host: "true"}}`,
			},
			refused: "set the annotation bootstrap.cluster.x-k8s.io/provision-new-host: wipe",
		},
		"consent for a host in use": {host: []string{
			consumed, withImage,
			`metadata: {annotations: {bootstrap.cluster.x-k8s.io/provision-new-host: wipe}}`,
		}, refused: wiped},
		"consent restored from a backup": {host: []string{
			withImage,
			`metadata: {labels: {velero.io/restore-name: r}, annotations: {bootstrap.cluster.x-k8s.io/provision-new-host: wipe}}`,
		}, refused: wiped},
		"an unused host restored from a backup":                  {host: []string{`metadata: {labels: {velero.io/restore-name: r}}`}},
		"the message refers to the page on restores":             {host: []string{consumed}, refused: "docs/operations/backup-and-restore.md"},
		"the message offers no consent while consumerRef is set": {host: []string{consumed}, refused: "remove spec.consumerRef."},
	} {
		t.Run(name, func(t *testing.T) { expectRefusal(t, c.Create(ctx, hostOf(t, tc.host...)), tc.refused) })
	}

	t.Run("without spec", func(t *testing.T) {
		host := withoutSpec(t)
		expectRefusal(t, c.Create(ctx, host), "")
		host.SetAnnotations(map[string]string{"example.com/changed": ""})
		expectRefusal(t, c.Update(ctx, host), "")
		expectRefusal(t, c.Delete(ctx, host), "")
	})

	unpaused := mergePatch(t, map[string]any{"metadata": map[string]any{"annotations": nil}})
	unpausedOnly := mergePatch(t,
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{"baremetalhost.metal3.io/paused": nil}}})
	for name, tc := range map[string]struct {
		host    []string
		change  client.Patch
		refused string
	}{
		"the pause ends without status":                {host: []string{consumed, withImage, underPause}, change: unpaused, refused: wiped},
		"the pause ends with the status as annotation": {host: []string{consumed, withImage, underPause, history}, change: unpausedOnly},
		"the pause and the annotation are removed together": {
			host:   []string{consumed, withImage, underPause, history},
			change: unpaused, refused: wiped,
		},
		"the pause ends with a restored status": {host: []string{running, withImage, underPause}, change: unpaused},
		"the pause of a new server ends":        {host: []string{underPause}, change: unpaused},
		"clusterctl deletes a moved host": {
			host: []string{consumed, withImage, underPause},
			change: mergePatch(t, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
				"baremetalhost.metal3.io/paused": nil, "clusterctl.cluster.x-k8s.io/delete-for-move": "",
			}}}),
		},
		"CAPM3 chooses a host": {change: mergePatch(t, object(t, consumed))},
		"a user sets an image before the operator reconciles the host": {change: mergePatch(t, object(t, withImage))},
	} {
		t.Run(name, func(t *testing.T) {
			host := existing(ctx, t, c, tc.host...)
			expectRefusal(t, c.Patch(ctx, host, tc.change), tc.refused)
		})
	}
}

// withoutSpec returns a BareMetalHost without spec, which the CRD permits.
func withoutSpec(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	host := hostOf(t)
	unstructured.RemoveNestedField(host.Object, "spec")
	return host
}

// checkHostDeletion deletes BareMetalHosts and infrastructure machines as users and controllers do.
func checkHostDeletion(ctx context.Context, t *testing.T, c client.Client) {
	awaitRefusal(t, func() error { return c.Delete(ctx, existing(ctx, t, c, running)) })
	const used = "is in use by Metal3Machine worker: its deletion would deprovision the server"
	state := func(state string) string { return `status: {provisioning: {state: ` + state + `}}` }
	for name, tc := range map[string]struct {
		host    []string
		refused string
	}{
		"of an installed Machine":              {host: []string{running}, refused: used},
		"externally provisioned, of a Machine": {host: []string{running, state("externally provisioned")}, refused: used},
		"paused":                               {host: []string{running, underPause}, refused: used},
		"with the annotation detached, not detached yet": {
			host:    []string{running, `metadata: {annotations: {baremetalhost.metal3.io/detached: ""}}`},
			refused: used,
		},
		"detached": {host: []string{
			running,
			`{metadata: {annotations: {baremetalhost.metal3.io/detached: ""}}, status: {operationalStatus: detached}}`,
		}},
		"detached no longer": {host: []string{running, `status: {operationalStatus: detached}`}, refused: used},
		"moved by clusterctl": {host: []string{
			running,
			`metadata: {annotations: {clusterctl.cluster.x-k8s.io/delete-for-move: ""}}`,
		}},
		"override": {host: []string{running, override}},
		"wrong value of the consent": {host: []string{
			running,
			`metadata: {annotations: {bootstrap.cluster.x-k8s.io/allow-deletion: "no"}}`,
		}, refused: "allow-deletion: \"true\""},
		"chosen, and not provisioned yet":                      {host: []string{running, state("available")}},
		"deprovisioning, because its Machine is being deleted": {host: []string{running, state("deprovisioning")}},
		"without Machine":                                      {host: []string{state("available")}},
		"provisioned without consumer":                         {host: []string{withImage, state("provisioned")}},
		"of another kind of consumer":                          {host: []string{running, `spec: {consumerRef: {kind: HostClaim}}`}},
		"that the operator has never reconciled":               {host: []string{consumed, underPause}},
		"the message gives the alternative":                    {host: []string{running}, refused: "Delete the Machine instead"},
		"the message mentions etcd": {
			host:    []string{running},
			refused: "on a control-plane host, after it has left etcd",
		},
		"the message covers a dead server": {host: []string{running}, refused: "If the server is dead and unplugged"},
	} {
		t.Run("BareMetalHost "+name, func(t *testing.T) { expectRefusal(t, c.Delete(ctx, existing(ctx, t, c, tc.host...)), tc.refused) })
	}
	t.Run("all BareMetalHosts at once", func(t *testing.T) {
		host := existing(ctx, t, c, running, `metadata: {labels: {all: once}}`)
		err := c.DeleteAllOf(ctx, host, client.InNamespace("default"), client.MatchingLabels{"all": "once"})
		expectRefusal(t, err, used)
	})

	const member = `metadata: {annotations: {controlplane.cluster.x-k8s.io/delete-protection: etcd-member}}`
	for name, tc := range map[string]struct {
		machine []string
		refused string
	}{
		"of an etcd member": {
			machine: []string{member},
			refused: "is a member of etcd: this deletion would wipe the host before it has left etcd",
		},
		"of another host": {},
		"moved by clusterctl": {machine: []string{
			member,
			`metadata: {annotations: {clusterctl.cluster.x-k8s.io/delete-for-move: ""}}`,
		}},
		"override":                           {machine: []string{member, override}},
		"the message gives the alternative":  {machine: []string{member}, refused: "Delete its Machine instead: the host leaves etcd first"},
		"the message names the kind to edit": {machine: []string{member}, refused: `allow-deletion: "true" on the Metal3Machine`},
	} {
		t.Run("Metal3Machine "+name, func(t *testing.T) {
			expectRefusal(t, c.Delete(ctx, existing(ctx, t, c, append([]string{metal3Machine}, tc.machine...)...)), tc.refused)
		})
	}
	t.Run("the namespace is being deleted", func(t *testing.T) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "terminating-", Finalizers: []string{"example.com/kept"}}}
		g := NewWithT(t)
		g.Expect(c.Create(ctx, namespace)).To(Succeed())
		elsewhere := `metadata: {namespace: ` + namespace.Name + `, finalizers: [example.com/kept]}`
		objects := []*unstructured.Unstructured{existing(ctx, t, c, running, elsewhere), existing(ctx, t, c, metal3Machine, member, elsewhere)}
		g.Expect(c.Delete(ctx, namespace)).To(Succeed())
		for _, o := range objects {
			g.Eventually(func() error { return client.IgnoreNotFound(c.Delete(ctx, o)) }, time.Minute, 200*time.Millisecond).Should(Succeed())
			g.Expect(client.IgnoreNotFound(c.Patch(ctx, o,
				mergePatch(t, map[string]any{"metadata": map[string]any{"finalizers": nil}})))).To(Succeed())
		}
	})
}

// metal3Machine is a patch that turns the BareMetalHost into a Metal3Machine without Machine.
const metal3Machine = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3Machine
spec: {bmc: null, bootMACAddress: null, online: null, image: {url: "http://images.invalid/rhcos.raw",
    checksum: "http://images.invalid/sums", diskFormat: raw}}
`

// minimalStatus has the required fields in the status of a BareMetalHost.
const minimalStatus = `{errorCount: 0, errorMessage: "", operationalStatus: OK, poweredOn: true, provisioning: {ID: x, image: {url: ""}}}`

// hostOf returns a new BareMetalHost with patches.
func hostOf(t *testing.T, changes ...string) *unstructured.Unstructured {
	t.Helper()
	content := object(t, newHost)
	for _, change := range changes {
		content = merge(content, object(t, change))
	}
	return &unstructured.Unstructured{Object: content}
}

// existing creates a BareMetalHost in the API server, including its status. Fields that a new host must not
// have are set after the creation.
func existing(ctx context.Context, t *testing.T, c client.Client, changes ...string) *unstructured.Unstructured {
	t.Helper()
	g, wanted := NewWithT(t), hostOf(t, changes...)
	created := wanted.DeepCopy()
	if created.GetKind() == "BareMetalHost" {
		created.SetAnnotations(map[string]string{"baremetalhost.metal3.io/paused": "test"})
	}
	g.Expect(c.Create(ctx, created)).To(Succeed())
	if status, has := wanted.Object["status"].(map[string]any); has {
		g.Expect(c.Status().Patch(ctx, created, mergePatch(t, map[string]any{"status": merge(object(t, minimalStatus), status)}))).To(Succeed())
	}
	annotations := map[string]any{"baremetalhost.metal3.io/paused": nil}
	for key, value := range wanted.GetAnnotations() {
		annotations[key] = value
	}
	g.Expect(c.Patch(ctx, created, mergePatch(t, map[string]any{"metadata": map[string]any{"annotations": annotations}}))).To(Succeed())
	return created
}

// A failing expression rejects the request with an incomprehensible message (failurePolicy Fail). So the
// expressions assume no field of spec or status to exist.
func TestPoliciesAssumeNoOptionalField(t *testing.T) {
	g := NewWithT(t)
	granted := regexp.MustCompile(`\b(object|oldObject)\.(spec|status)\b|\bhas\((object|oldObject)\.(spec|status)`)
	policies := 0
	for _, object := range components(t, "bootstrap/default") {
		if object["kind"] != "ValidatingAdmissionPolicy" {
			continue
		}
		policies++
		written, err := yaml.Marshal(object["spec"])
		g.Expect(err).NotTo(HaveOccurred())
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		g.Expect(granted.FindAllString(string(written), -1)).To(BeEmpty(), name)
	}
	g.Expect(policies).To(BeNumerically(">=", 6))
}

func expectRefusal(t *testing.T, err error, refused string) {
	t.Helper()
	if refused == "" {
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return
	}
	NewWithT(t).Expect(err).To(And(Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring(refused))))
	NewWithT(t).Expect(len(err.Error())).To(BeNumerically("<", 1024))
}

// awaitRefusal waits until the API server has compiled a policy.
func awaitRefusal(t *testing.T, request func() error) {
	t.Helper()
	NewWithT(t).Eventually(request, time.Minute, 200*time.Millisecond).Should(Satisfy(apierrors.IsInvalid))
}
