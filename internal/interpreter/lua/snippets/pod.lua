local function container(add, c)
  for _, from in ipairs(elements(c, "envFrom")) do
    add("ConfigMap", child(child(from, "configMapRef"), "name"))
    add("Secret", child(child(from, "secretRef"), "name"))
  end
  for _, env in ipairs(elements(c, "env")) do
    local from = child(env, "valueFrom")
    add("ConfigMap", child(child(from, "configMapKeyRef"), "name"))
    add("Secret", child(child(from, "secretKeyRef"), "name"))
  end
end

-- Volumes whose driver needs a Secret, in the order in which the first counts.
local storage = {"cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"}

local function volume(add, v)
  if child(v, "configMap") ~= nil then
    add("ConfigMap", child(v.configMap, "name"))
  elseif child(v, "secret") ~= nil then
    add("Secret", child(v.secret, "secretName"))
  elseif child(v, "persistentVolumeClaim") ~= nil then
    add("PersistentVolumeClaim", child(v.persistentVolumeClaim, "claimName"))
  elseif child(v, "projected") ~= nil then
    for _, source in ipairs(elements(v.projected, "sources")) do
      add("ConfigMap", child(child(source, "configMap"), "name"))
      add("Secret", child(child(source, "secret"), "name"))
    end
  elseif child(v, "azureFile") ~= nil then
    add("Secret", child(v.azureFile, "secretName"))
  elseif child(v, "csi") ~= nil then
    add("Secret", child(child(v.csi, "nodePublishSecretRef"), "name"))
  else
    for _, driver in ipairs(storage) do
      if child(v, driver) ~= nil then
        add("Secret", child(child(v[driver], "secretRef"), "name"))
        return
      end
    end
  end
end

local function pod(add, spec)
  local account = child(spec, "serviceAccountName")
  if account == nil or account == "" then
    account = child(spec, "serviceAccount")
  end
  add("ServiceAccount", account)
  for _, secret in ipairs(elements(spec, "imagePullSecrets")) do
    add("Secret", child(secret, "name"))
  end
  for _, containers in ipairs({"initContainers", "containers", "ephemeralContainers"}) do
    for _, c in ipairs(elements(spec, containers)) do
      container(add, c)
    end
  end
  for _, v in ipairs(elements(spec, "volumes")) do
    volume(add, v)
  end
end
