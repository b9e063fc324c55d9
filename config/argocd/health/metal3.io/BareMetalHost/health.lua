local settled = {
  available = "the host is free", provisioned = "the host is provisioned",
  ["externally provisioned"] = "the host was installed by another client",
}

local function annotated(name)
  return obj.metadata.annotations ~= nil and obj.metadata.annotations[name] ~= nil
end

if annotated("baremetalhost.metal3.io/paused") then
  return { status = "Suspended", message = "the host is paused by an annotation" }
end
local status = obj.status or {}
local state = ""
if status.provisioning ~= nil then
  state = status.provisioning.state or ""
end
if status.operationalStatus == "error" or (status.errorMessage or "") ~= "" then
  local message = status.errorMessage or ""
  if (status.errorType or "") ~= "" then
    message = status.errorType .. ": " .. message
  end
  return { status = "Degraded", message = message }
end
if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "being deleted: " .. state }
end
if state == "unmanaged" then
  return { status = "Suspended", message = "spec.bmc is not set: the host is not managed" }
end
if status.operationalStatus == "delayed" then
  return { status = "Progressing", message = state .. ": waiting for operations on other hosts" }
end
if settled[state] ~= nil then
  return { status = "Healthy", message = settled[state] }
end
if state == "" then
  return { status = "Progressing", message = "waiting for the Bare Metal Operator to read the host" }
end
return { status = "Progressing", message = state }
