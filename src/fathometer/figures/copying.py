"""x"""

from fathometer.figures.standard import standard_figures as copying_figures
