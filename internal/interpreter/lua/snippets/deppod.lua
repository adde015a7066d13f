function GetDependencies(desiredObj)
  local found, add = references(child(child(desiredObj, "metadata"), "namespace"))
  pod(add, child(podTemplate(desiredObj), "spec"))
  return found
end
