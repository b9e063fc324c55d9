package redact

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// hidden is the credential in each text.
const hidden = "Hunter2TopValue"

func TestTextWithoutCredentials(t *testing.T) {
	for situation, text := range map[string]string{
		"user and password in a URL":         "connect to redfish+https://root:" + hidden + "@bmc1/redfish/v1/Systems/1 failed",
		"API key in a URL":                   "GET https://svc/v2/events?cluster_id=1&api_key=" + hidden,
		"API key without a host":             `"GET /v2/events?api_key=` + hidden + `" 200`,
		"token in the path of an image":      "https://img/byapikey/" + hidden + "/4.19/full.iso",
		"bearer token":                       "Authorization: Bearer " + hidden,
		"JSON":                               `{"user":"x","password":"` + hidden + `"}`,
		"JSON in a string":                   `"body":"{\"password\":\"` + hidden + `\"}"`,
		"password with a quote":              `{"password":"a\"` + hidden + `"}`,
		"cut off JSON":                       `{"password":"` + hidden,
		"pull secret":                        `{"auths":{"quay.io":{"auth":"` + hidden + `","email":"a@b"}}}`,
		"YAML":                               "users:\n- user:\n    token: two " + hidden + "\n",
		"kubeconfig":                         "    client-key-data: " + hidden,
		"structured log":                     `msg="login" bmcPassword="` + hidden + `" host=a`,
		"environment":                        "IRONIC_HTTP_PASSWORD=" + hidden,
		"single quotes":                      `{'password': '` + hidden + `'}`,
		"ipmitool":                           "ipmitool -I lanplus -H bmc -U root -P " + hidden + " power status",
		"ipmitool as a list":                 `['ipmitool', '-P', '` + hidden + `']`,
		"flag":                               "run --registry-password " + hidden,
		"private key":                        "-----BEGIN OPENSSH PRIVATE KEY-----\n" + hidden + "\n-----END OPENSSH PRIVATE KEY-----",
		"private key without its end":        "-----BEGIN PRIVATE KEY-----\n" + hidden,
		"private key with escapes":           `-----BEGIN RSA PRIVATE KEY-----\n` + hidden + `\n-----END RSA PRIVATE KEY-----`,
		"base64 of a private key":            "LS0tLS1CRUdJTiBQ" + hidden + "==",
		"base64 of a pull secret":            "eyJhdXRocyI6" + hidden,
		"file of an ignition":                `"source":"data:text/plain;charset=utf-8;base64,` + hidden + `"`,
		"token of OpenShift":                 "sha256~" + hidden,
		"hash of a password":                 "core:$6$salt$" + hidden + "xyz:",
		"user and password without a scheme": "curl admin:" + hidden + "@bmc1",
		"header":                             "X-Secret-Key: " + hidden,
	} {
		t.Run(situation, func(t *testing.T) {
			g, r := NewWithT(t), New()
			got := r.Text(text)
			g.Expect(got).NotTo(ContainSubstring(hidden))
			g.Expect(r.Text(got)).To(Equal(got), "redacting again changes nothing")
		})
	}
}

func TestUsefulTextIsKept(t *testing.T) {
	for _, text := range []string{
		"Secret lab/pull-secret does not exist. Create it.",
		"cannot read secret: not found",
		"dataSecretName: ha-m0",
		"image quay.io/ocp/release:4.19.3@sha256:0123456789abcdef is pulled",
		"2026-11-29T12:00:00Z host m0: reached installation stage Writing image to disk: 45%",
		"BareMetalHost lab/rack1-u7 has no MAC address. Set spec.bootMACAddress or wait for inspection.",
		"authentication failed for host m0",
	} {
		NewWithT(t).Expect(New().Text(text)).To(Equal(text))
	}
}

func TestObjectWithoutCredentials(t *testing.T) {
	g, r := NewWithT(t), New()
	object := map[string]any{}
	g.Expect(yaml.Unmarshal([]byte(strings.ReplaceAll(`
metadata:
  name: rack1
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: HIDDEN
    agent-install.openshift.io/install-config-overrides: '{"fencing":{"credentials":[{"username":"HIDDEN","password":"HIDDEN"}]},"a":1}'
    agent-install.openshift.io/ignition-config-overrides: HIDDEN
spec:
  bmc: {address: "redfish://root:HIDDEN@bmc1/redfish/v1/Systems/1?token=HIDDEN", credentialsName: rack1-bmc}
  userData: {name: m0, namespace: lab}
  pullSecretRef: {name: pull-secret}
  ignitionConfigOverride: HIDDEN
  config:
    interfaces:
    - {name: eth0, 802.1x: {identity: a, private-key-password: HIDDEN}}
    - {name: wifi, wpa: {psk: HIDDEN}}
    - {name: digits, password: 12345678}
  env: [{name: BMC_PASSWORD, value: HIDDEN}, {name: LEVEL, value: debug}]
  document: "a: 1\npassword: HIDDEN\nlist:\n- token: HIDDEN\n"
`, "HIDDEN", hidden)), &object)).To(Succeed())
	r.Learn(object)
	r.Object(object)
	got, err := yaml.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).NotTo(Or(ContainSubstring(hidden), ContainSubstring("12345678")))
	for _, kept := range []string{
		"address: redfish://bmc1/redfish/v1/Systems/1", "credentialsName: rack1-bmc", "name: m0", "name: pull-secret", "name: eth0",
		"identity: a", "value: debug",
	} {
		g.Expect(string(got)).To(ContainSubstring(kept))
	}
	g.Expect(r.Text("the log contains "+hidden+" alone")).To(Equal("the log contains "+Removed+" alone"), "learned")
}

func TestDeepObjectEnds(t *testing.T) {
	g, value := NewWithT(t), any("password="+hidden)
	for range 1000 {
		value = map[string]any{"a": value}
	}
	object := map[string]any{"spec": value}
	New().Object(object)
	got, err := yaml.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).NotTo(ContainSubstring(hidden))
}
